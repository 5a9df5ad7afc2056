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
static void write_real(double real, struct buffer *out)
{
    char text[40];
    int digits = 1;
    if (!isfinite(real)) {
        buffer_append_str(out, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
        return;
    }
    do
        snprintf(text, sizeof(text), "%.*e", digits - 1, real);
    while (strtod(text, NULL) - real != 0 && ++digits <= 17);
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent >= -4 && exponent < 16)
        snprintf(text, sizeof(text), "%.*f", digits - 1 > exponent ? digits - 1 - exponent : 1, real);
    buffer_append_str(out, text);
}

/* ---- repr() -------------------------------------------------------------------------------- */

static void write_escape(uint8_t c, char quote, struct buffer *out)
{
    static const char named[] = "\n\r\t\\", letters[] = "nrt\\";
    const char *found = c ? strchr(named, c) : NULL;
    if (found)
        buffer_printf(out, "\\%c", letters[found - named]);
    else if (c == (uint8_t)quote)
        buffer_printf(out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
        buffer_printf(out, "\\x%02x", c);
    else
        buffer_append(out, &c, 1);
}

static void write_quoted(struct slice text, struct buffer *out)
{
    const bool has_single = text.len && memchr(text.data, '\'', text.len);
    const char quote = has_single && !memchr(text.data, '"', text.len) ? '"' : '\'';
    buffer_append(out, &quote, 1);
    for (size_t i = 0; i < text.len; i++)
        write_escape(text.data[i], quote, out);
    buffer_append(out, &quote, 1);
}

static void write_list(struct jinja_run *run, const struct jinja_list *list, struct buffer *out)
{
    buffer_append_str(out, list->is_tuple ? "(" : "[");
    for (size_t i = 0; i < list->count; i++) {
        buffer_append_str(out, i ? ", " : "");
        jinja_write_repr(run, &list->items[i], out);
    }
    buffer_append_str(out, list->is_tuple ? list->count == 1 ? ",)" : ")" : "]");
}

static void write_dict(struct jinja_run *run, const struct jinja_dict *dict, struct buffer *out)
{
    if (dict->is_namespace)
        jinja_fail(run, "a namespace has no text");
    buffer_append_str(out, "{");
    for (size_t i = 0; i < dict->count && run->code == 0; i++) {
        buffer_append_str(out, i ? ", " : "");
        jinja_write_repr(run, &dict->pairs[i].key, out);
        buffer_append_str(out, ": ");
        jinja_write_repr(run, &dict->pairs[i].value, out);
    }
    buffer_append_str(out, "}");
}

void jinja_write_repr(struct jinja_run *run, const struct jinja_value *value, struct buffer *out)
{
    switch (value->kind) {
    case JINJA_UNDEFINED: buffer_append_str(out, "Undefined"); break;
    case JINJA_NONE: buffer_append_str(out, "None"); break;
    case JINJA_BOOL: buffer_append_str(out, value->truth ? "True" : "False"); break;
    case JINJA_INTEGER: buffer_printf(out, "%lld", (long long)value->integer); break;
    case JINJA_REAL: write_real(value->real, out); break;
    case JINJA_STRING: write_quoted(value->text, out); break;
    case JINJA_LIST: write_list(run, value->list, out); break;
    case JINJA_DICT: write_dict(run, value->dict, out); break;
    case JINJA_CALLABLE: jinja_fail(run, "a function has no text");
    }
}

void jinja_write(struct jinja_run *run, const struct jinja_value *value, struct buffer *out)
{
    if (value->kind == JINJA_STRING)
        buffer_append(out, value->text.data, value->text.len);
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
