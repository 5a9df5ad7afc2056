#include "workers/engines/jinja/values/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

size_t jinja_character(struct slice text)
{
    const size_t len = utf8_sequence(text);
    return len ? len : 1;
}

size_t jinja_length(struct slice text)
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; count++)
        at += jinja_character(slice_of(text.data + at, text.len - at));
    return count;
}

bool jinja_is_ascii(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] & 0x80)
            return false;
    return true;
}

const uint8_t *jinja_find(struct slice text, struct slice what)
{
    return what.len ? memmem(text.data, text.len, what.data, what.len) : text.data ? text.data : (const uint8_t *)"";
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* The fewest digits that say it, as Python writes them. */
static void write_real(struct jinja_run *run, double real, struct buffer *out)
{
    char text[40];
    int digits = 1;
    if (!isfinite(real)) {
        jinja_append_str(run, out, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
        return;
    }
    do
        snprintf(text, sizeof(text), "%.*e", digits - 1, real);
    while (strtod(text, NULL) - real != 0 && ++digits <= 17);
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent >= -4 && exponent < 16)
        snprintf(text, sizeof(text), "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 1, real);
    jinja_append_str(run, out, text);
}

/* ---- repr() -------------------------------------------------------------------------------- */

/* The character that it is, which is UTF-8. */
static uint32_t number_of(struct slice character)
{
    uint32_t c = character.len == 1 ? character.data[0] : character.data[0] & (0x7fu >> character.len);
    for (size_t i = 1; i < character.len; i++)
        c = c << 6 | (character.data[i] & 0x3f);
    return c;
}

/* Blanks but the common one, and what steers or is private: Python writes their numbers. */
static bool is_unprintable(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1f},          {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
        {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
        {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
        {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff}};
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges) && ranges[i][0] <= c; i++)
        if (c <= ranges[i][1])
            return true;
    return false;
}

static void write_escape(struct jinja_run *run, struct slice character, char quote, struct buffer *out)
{
    static const char named[] = "\n\r\t\\", letters[] = "nrt\\";
    const uint32_t c = number_of(character);
    const char *found = c && c < 0x80 ? strchr(named, (int)c) : NULL;
    char text[16];
    if (!found && c != (uint32_t)quote && !is_unprintable(c)) {
        jinja_append(run, out, character.data, character.len);
        return;
    }
    if (found || c == (uint32_t)quote)
        snprintf(text, sizeof(text), "\\%c", found ? letters[found - named] : quote);
    else
        snprintf(text, sizeof(text), c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    jinja_append_str(run, out, text);
}

static void write_quoted(struct jinja_run *run, struct slice text, struct buffer *out)
{
    const bool has_single = text.len && memchr(text.data, '\'', text.len);
    const char quote = has_single && !memchr(text.data, '"', text.len) ? '"' : '\'';
    jinja_append(run, out, &quote, 1);
    jinja_spend(run, text.len);
    for (size_t at = 0, len; at < text.len && run->code == 0; at += len) {
        len = jinja_character(slice_of(text.data + at, text.len - at));
        write_escape(run, slice_of(text.data + at, len), quote, out);
    }
    jinja_append(run, out, &quote, 1);
}

void jinja_refuse_view(struct jinja_run *run, const struct jinja_list *list)
{
    static const char *const words[] = {
        [JINJA_RANGE] = "a range", [JINJA_DICT_VIEW] = "what a dict shows", [JINJA_GENERATOR] = "a generator"};
    if (list->view)
        jinja_fail(run, "%s is not written here: make it a list first (|list)", words[list->view]);
}

static void write_list(struct jinja_run *run, const struct jinja_list *list, struct buffer *out)
{
    jinja_refuse_view(run, list);
    jinja_append_str(run, out, list->is_tuple ? "(" : "[");
    for (size_t i = 0; i < list->count && run->code == 0; i++) {
        jinja_append_str(run, out, i ? ", " : "");
        jinja_write_repr(run, &list->items[i], out);
    }
    jinja_append_str(run, out, list->is_tuple ? list->count == 1 ? ",)" : ")" : "]");
}

static void write_dict(struct jinja_run *run, const struct jinja_dict *dict, struct buffer *out)
{
    if (dict->is_namespace)
        jinja_fail(run, "a namespace has no text");
    jinja_append_str(run, out, "{");
    for (size_t i = 0; i < dict->count && run->code == 0; i++) {
        jinja_append_str(run, out, i ? ", " : "");
        jinja_write_repr(run, &dict->pairs[i].key, out);
        jinja_append_str(run, out, ": ");
        jinja_write_repr(run, &dict->pairs[i].value, out);
    }
    jinja_append_str(run, out, "}");
}

static void write_integer(struct jinja_run *run, int64_t integer, struct buffer *out)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)integer);
    jinja_append_str(run, out, text);
}

void jinja_write_repr(struct jinja_run *run, const struct jinja_value *value, struct buffer *out)
{
    if (!jinja_spend(run, 0))
        return;
    switch (value->kind) {
    case JINJA_UNDEFINED: jinja_append_str(run, out, "Undefined"); break;
    case JINJA_NONE: jinja_append_str(run, out, "None"); break;
    case JINJA_BOOL: jinja_append_str(run, out, value->truth ? "True" : "False"); break;
    case JINJA_INTEGER: write_integer(run, value->integer, out); break;
    case JINJA_REAL: write_real(run, value->real, out); break;
    case JINJA_STRING: write_quoted(run, value->text, out); break;
    case JINJA_LIST: write_list(run, value->list, out); break;
    case JINJA_DICT: write_dict(run, value->dict, out); break;
    case JINJA_CALLABLE: jinja_fail(run, "a function has no text");
    }
}

void jinja_write(struct jinja_run *run, const struct jinja_value *value, struct buffer *out)
{
    if (value->kind == JINJA_STRING)
        jinja_append(run, out, value->text.data, value->text.len);
    else if (value->kind != JINJA_UNDEFINED)
        jinja_write_repr(run, value, out);
}

struct jinja_value jinja_str(struct jinja_run *run, const struct jinja_value *value)
{
    struct buffer text = {0};
    if (value->kind == JINJA_STRING)
        return *value;
    jinja_write(run, value, &text);
    return jinja_string_of(run, &text);
}
