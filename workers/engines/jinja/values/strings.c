#include "workers/engines/jinja/values/strings.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "workers/engines/jinja/values/text.h"

/* ---- escapes ---------------------------------------------------------------------------------- */

static void append_character(struct jinja_run *run, struct buffer *out, uint32_t c)
{
    if (c < 0x80)
        jinja_append(run, out, (uint8_t[]){(uint8_t)c}, 1);
    else if (c < 0x800)
        jinja_append(run, out, (uint8_t[]){(uint8_t)(0xc0 | c >> 6), (uint8_t)(0x80 | (c & 0x3f))}, 2);
    else if (c < 0x10000)
        jinja_append(
            run, out,
            (uint8_t[]){(uint8_t)(0xe0 | c >> 12), (uint8_t)(0x80 | (c >> 6 & 0x3f)), (uint8_t)(0x80 | (c & 0x3f))}, 3);
    else
        jinja_append(run, out,
                     (uint8_t[]){(uint8_t)(0xf0 | c >> 18), (uint8_t)(0x80 | (c >> 12 & 0x3f)),
                                 (uint8_t)(0x80 | (c >> 6 & 0x3f)), (uint8_t)(0x80 | (c & 0x3f))},
                     4);
}

/* A character by its number, `digits` long; false: it is none. */
static bool append_numbered(struct jinja_run *run, struct buffer *out, struct slice digits, size_t count)
{
    char text[9] = "";
    char *end;
    if (digits.len < count)
        return false;
    memcpy(text, digits.data, count);
    const unsigned long c = strtoul(text, &end, 16);
    if (*end || !isxdigit((uint8_t)text[0]) || c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return false;
    append_character(run, out, (uint32_t)c);
    return true;
}

/* What stands behind a backslash; how much of it that was. */
static size_t append_escape(struct jinja_run *run, struct slice text, struct buffer *out)
{
    static const char letters[] = "nrtabfv\\'\"\n", meant[] = "\n\r\t\a\b\f\v\\'\"";
    static const struct {
        char letter;
        size_t digits;
    } numbered[] = {{'x', 2}, {'u', 4}, {'U', 8}};
    const char *found = strchr(letters, text.data[0]);
    if (found) {
        jinja_append(run, out, &meant[found - letters], found - letters < (ptrdiff_t)sizeof(meant) - 1);
        return 1;
    }
    for (size_t i = 0; i < sizeof(numbered) / sizeof(*numbered); i++)
        if (text.data[0] == numbered[i].letter) {
            if (!append_numbered(run, out, slice_of(text.data + 1, text.len - 1), numbered[i].digits))
                jinja_fail(run, "an escape that is no character");
            return 1 + numbered[i].digits;
        }
    if (isdigit(text.data[0]) || text.data[0] == 'N')
        jinja_fail(run, "an escape that is not known here: \\%c", text.data[0]);
    jinja_append_str(run, out, "\\");
    return 0;
}

struct slice jinja_unescape(struct jinja_run *run, struct slice text)
{
    struct buffer out = {0};
    if (text.len == 0 || !memchr(text.data, '\\', text.len))
        return text;
    for (size_t at = 0; at < text.len && run->code == 0;) {
        if (text.data[at] != '\\' || at + 1 == text.len)
            jinja_append(run, &out, &text.data[at++], 1);
        else
            at += 1 + append_escape(run, slice_of(text.data + at + 1, text.len - at - 1), &out);
    }
    return jinja_string_of(run, &out).text;
}

/* ---- ends --------------------------------------------------------------------------------------- */

static bool has_character(struct slice characters, struct slice one)
{
    for (size_t at = 0, len; at < characters.len; at += len) {
        const struct slice from = slice_of(characters.data + at, characters.len - at);
        len = jinja_character(from);
        if (slice_equal(slice_of(from.data, len), one))
            return true;
    }
    return false;
}

static struct slice last_character(struct slice text)
{
    size_t len = 1;
    while (len < text.len && len < 4 && (text.data[text.len - len] & 0xc0) == 0x80)
        len++;
    return slice_of(text.data + text.len - len, len);
}

struct slice jinja_strip(struct slice text, const struct slice *characters, enum jinja_sides sides)
{
    if (!characters && (sides & JINJA_LEFT))
        text = text_strip_left(text);
    if (!characters)
        return sides & JINJA_RIGHT ? text_strip_right(text) : text;
    while ((sides & JINJA_LEFT) && text.len && has_character(*characters, slice_of(text.data, jinja_character(text)))) {
        const size_t len = jinja_character(text);
        text = slice_of(text.data + len, text.len - len);
    }
    while ((sides & JINJA_RIGHT) && text.len && has_character(*characters, last_character(text)))
        text.len -= last_character(text).len;
    return text;
}

/* ---- letters -------------------------------------------------------------------------------------- */

static uint8_t recase(uint8_t c, enum jinja_case to, bool is_first)
{
    const bool is_upper = to == JINJA_UPPER || (is_first && to != JINJA_LOWER);
    return (uint8_t)(is_upper ? toupper(c) : tolower(c));
}

/* Whether a word begins behind it. */
static bool begins_word(uint8_t before, enum jinja_case to)
{
    const bool is_blank = isspace(before) || (before >= 0x1c && before <= 0x1f);
    return to == JINJA_TITLE ? !isalpha(before)
                             : to == JINJA_WORDS && (is_blank || (before && strchr("-({[<", before)));
}

struct jinja_value jinja_recase(struct jinja_run *run, struct slice text, enum jinja_case to)
{
    struct buffer out = {0};
    if (jinja_spend(run, text.len) && !jinja_is_ascii(text))
        jinja_fail(run, "the cases of letters beyond ASCII are not known here");
    for (size_t i = 0; i < text.len && run->code == 0; i++) {
        const bool is_first = i == 0 || begins_word(text.data[i - 1], to);
        const uint8_t c = recase(text.data[i], to, is_first);
        jinja_append(run, &out, &c, 1);
    }
    return jinja_string_of(run, &out);
}

/* ---- words ---------------------------------------------------------------------------------------- */

struct jinja_value jinja_replace(struct jinja_run *run, struct slice text, struct slice from, struct slice to,
                                 int64_t most)
{
    struct buffer out = {0};
    const uint8_t *found;
    if (from.len == 0)
        jinja_fail(run, "nothing is not replaced here");
    jinja_spend(run, text.len);
    while (run->code == 0 && most-- != 0 && (found = memmem(text.data, text.len, from.data, from.len))) {
        const size_t before = (size_t)(found - text.data);
        jinja_append(run, &out, text.data, before);
        jinja_append(run, &out, to.data, to.len);
        text = slice_of(found + from.len, text.len - before - from.len);
    }
    jinja_append(run, &out, text.data, text.len);
    return jinja_string_of(run, &out);
}

static void add_piece(struct jinja_run *run, struct jinja_list *list, const uint8_t *from, const uint8_t *to)
{
    jinja_list_add(run, list, jinja_string(slice_of(from, (size_t)(to - from))));
}

static struct jinja_value split_blanks(struct jinja_run *run, struct slice text, int64_t most)
{
    struct jinja_list *list = jinja_list_new(run);
    jinja_spend(run, text.len);
    for (text = text_strip_left(text); text.len && run->code == 0; text = text_strip_left(text)) {
        size_t len = 0;
        while (len < text.len && !text_space_at(slice_of(text.data + len, text.len - len)))
            len += jinja_character(slice_of(text.data + len, text.len - len));
        if (most-- == 0)
            len = text_strip_right(text).len;
        add_piece(run, list, text.data, text.data + len);
        text = slice_of(text.data + len, most == -1 ? 0 : text.len - len);
    }
    return jinja_list_value(list);
}

static struct jinja_value split_right(struct jinja_run *run, struct slice text, struct slice separator, int64_t most)
{
    struct jinja_list *pieces = jinja_list_new(run), *list = jinja_list_new(run);
    for (size_t at = text.len; at >= separator.len && most != 0 && run->code == 0;) {
        if (memcmp(text.data + at - separator.len, separator.data, separator.len) != 0) {
            at--;
            continue;
        }
        add_piece(run, pieces, text.data + at, text.data + text.len);
        text.len = at = at - separator.len;
        most--;
    }
    jinja_list_add(run, pieces, jinja_string(text));
    for (size_t i = pieces->count; i > 0 && run->code == 0; i--)
        jinja_list_add(run, list, pieces->items[i - 1]);
    return jinja_list_value(list);
}

struct jinja_value jinja_split(struct jinja_run *run, struct slice text, const struct slice *separator, int64_t most,
                               bool is_right)
{
    if (separator && separator->len == 0)
        jinja_fail(run, "an empty separator");
    if (run->code < 0 || (!separator && is_right && most >= 0))
        jinja_fail(run, "rsplit at blanks is not known here");
    if (!jinja_spend(run, text.len))
        return jinja_undefined("");
    if (!separator)
        return split_blanks(run, text, most);
    if (is_right)
        return split_right(run, text, *separator, most);
    struct jinja_list *list = jinja_list_new(run);
    const uint8_t *found;
    while (run->code == 0 && most-- != 0 && (found = memmem(text.data, text.len, separator->data, separator->len))) {
        add_piece(run, list, text.data, found);
        text = slice_of(found + separator->len, text.len - (size_t)(found - text.data) - separator->len);
    }
    jinja_list_add(run, list, jinja_string(text));
    return jinja_list_value(list);
}

/* Bytes of the line's end that stands at its beginning, as Python's str has them; 0: none does. */
static size_t line_end(struct slice text)
{
    static const char *const ends[] = {"\r\n", "\n",   "\r",       "\v",           "\f",          "\x1c",
                                       "\x1d", "\x1e", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        const size_t len = strlen(ends[i]);
        if (text.len >= len && memcmp(text.data, ends[i], len) == 0)
            return len;
    }
    return 0;
}

struct jinja_value jinja_split_lines(struct jinja_run *run, struct slice text, bool keeps_ends)
{
    struct jinja_list *list = jinja_list_new(run);
    jinja_spend(run, text.len * 4);
    while (text.len && run->code == 0) {
        size_t len = 0, end = 0;
        while (len < text.len && (end = line_end(slice_of(text.data + len, text.len - len))) == 0)
            len++;
        add_piece(run, list, text.data, text.data + len + (keeps_ends ? end : 0));
        text = slice_of(text.data + len + end, text.len - len - end);
    }
    return jinja_list_value(list);
}
