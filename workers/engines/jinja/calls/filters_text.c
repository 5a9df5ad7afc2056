#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "workers/engines/jinja/calls/filters.h"
#include "workers/engines/jinja/values/strings.h"
#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"
#include "workers/engines/jinja/values/json_text.h"

/* ---- texts ------------------------------------------------------------------------------------------ */

JINJA_FILTER(trim)
{
    const struct slice *characters = jinja_argument_text(run, given, 0, "chars");
    const struct slice text = jinja_str(run, of).text;
    jinja_spend(run, text.len);
    return jinja_string(jinja_strip(text, characters, JINJA_BOTH));
}

JINJA_FILTER(upper) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_UPPER); }
JINJA_FILTER(lower) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_LOWER); }
JINJA_FILTER(capitalize) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_CAPITAL); }
JINJA_FILTER(title) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_WORDS); }
JINJA_FILTER(string) { return (void)given, jinja_str(run, of); }
JINJA_FILTER(safe) { return (void)run, (void)given, *of; }

JINJA_FILTER(replace)
{
    const struct slice *from = jinja_argument_text(run, given, 0, "old");
    const struct slice *to = jinja_argument_text(run, given, 1, "new");
    if (!from || !to)
        jinja_fail(run, "replace wants two texts");
    return run->code == 0 ? jinja_replace(run, jinja_str(run, of).text, *from, *to,
                                          jinja_argument_whole(run, given, 2, "count", -1))
                          : *of;
}

/* The lines of a text that ends with one more of them: so Jinja has it for this. */
static struct jinja_value lines_of(struct jinja_run *run, const struct jinja_value *of)
{
    const struct slice text = jinja_str(run, of).text;
    struct buffer ended = {0};
    jinja_append(run, &ended, text.data, text.len);
    jinja_append_str(run, &ended, "\n");
    return jinja_split_lines(run, jinja_string_of(run, &ended).text, false);
}

/* Each line but the first, and no empty one. */
JINJA_FILTER(indent)
{
    const int64_t width = jinja_argument_whole(run, given, 0, "width", 4);
    const bool is_first_too = jinja_argument_true(given, 1, "first");
    const bool has_blank = jinja_argument_true(given, 2, "blank");
    const struct jinja_value lines = lines_of(run, of);
    struct buffer out = {0};
    char blanks[1001];
    if (width < 0 || width > 1000)
        jinja_fail(run, "indent wants a width of 0 to 1000");
    memset(blanks, ' ', sizeof(blanks));
    for (size_t i = 0; i < lines.list->count && run->code == 0; i++) {
        const struct slice line = lines.list->items[i].text;
        jinja_append_str(run, &out, i ? "\n" : "");
        if (i ? has_blank || line.len : is_first_too)
            jinja_append(run, &out, blanks, (size_t)width);
        jinja_append(run, &out, line.data, line.len);
    }
    return jinja_string_of(run, &out);
}

JINJA_FILTER(tojson)
{
    const int64_t width = jinja_argument_whole(run, given, 0, "indent", 0);
    struct buffer out = {0};
    if (width < 0 || width > 100)
        jinja_fail(run, "tojson wants an indent of 0 to 100");
    if (jinja_argument_true(given, 0, "ensure_ascii"))
        jinja_fail(run, "tojson with ensure_ascii is not known here");
    jinja_write_json(run, of, run->code == 0 ? (unsigned)width : 0, &out);
    return jinja_string_of(run, &out);
}

JINJA_FILTER(join)
{
    const struct slice *separator = jinja_argument_text(run, given, 0, "d");
    const struct slice *attribute = jinja_argument_text(run, given, 1, "attribute");
    const struct jinja_list *items = jinja_items(run, of);
    struct buffer out = {0};
    for (size_t i = 0; i < items->count && jinja_spend(run, 0); i++) {
        const struct jinja_value item = attribute ? jinja_path(run, &items->items[i], *attribute, NULL)
                                                  : items->items[i];
        if (i && separator)
            jinja_append(run, &out, separator->data, separator->len);
        jinja_write(run, &item, &out);
    }
    return jinja_string_of(run, &out);
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

/* Towards 0; Python's whole numbers have no end, and those here do. */
static struct jinja_value whole_of(struct jinja_run *run, double real)
{
    const bool fits = real > -9.2e18 && real < 9.2e18;
    if (!fits)
        jinja_fail(run, "a whole number that is too large");
    return jinja_integer(fits ? (int64_t)real : 0);
}

/* "3" and "3.7" are numbers; false: it is none. */
static bool take_whole(struct jinja_run *run, struct slice text, struct jinja_value *ret)
{
    char digits[64], *end;
    if (!jinja_is_ascii(text) || (text.len && memchr(text.data, '_', text.len)))
        jinja_fail(run, "int is known here of ASCII digits alone");
    if (text.len >= sizeof(digits))
        jinja_fail(run, "int is known here of less than %zu characters", sizeof(digits));
    for (size_t i = 0; run->code == 0 && i < text.len; i++)
        if (!text.data[i] || !strchr("0123456789+-.eE", text.data[i]))
            return false;
    if (run->code < 0 || text.len == 0)
        return false;
    memcpy(digits, text.data, text.len);
    digits[text.len] = '\0';
    errno = 0;
    *ret = jinja_integer(strtoll(digits, &end, 10));
    if (*end || errno) {
        const double real = strtod(digits, &end);
        if (*end)
            return false;
        *ret = whole_of(run, real);
    }
    return true;
}

JINJA_FILTER(to_int)
{
    struct jinja_value whole;
    if (of->kind == JINJA_REAL)
        return whole_of(run, of->real);
    if (jinja_is_number(of))
        return jinja_integer(jinja_whole(of));
    if (of->kind == JINJA_STRING && jinja_spend(run, of->text.len) && take_whole(run, text_strip(of->text), &whole))
        return whole;
    return jinja_integer(jinja_argument_whole(run, given, 0, "default", 0));
}

JINJA_FILTER(to_float)
{
    if (!jinja_is_number(of))
        jinja_fail(run, "float of %s is not known here", jinja_kind_word(of));
    return (void)given, run->code == 0 ? jinja_real(jinja_number(of)) : *of;
}

JINJA_FILTER(absolute)
{
    if (!jinja_is_number(of))
        jinja_fail(run, "abs of %s", jinja_kind_word(of));
    if (of->kind == JINJA_INTEGER && of->integer == INT64_MIN)
        jinja_fail(run, "a number that is too large");
    if (run->code < 0)
        return *of;
    return (void)given, of->kind == JINJA_REAL ? jinja_real(of->real < 0 ? -of->real : of->real)
                        : jinja_is_whole(of)   ? jinja_integer(jinja_whole(of) < 0 ? -jinja_whole(of) : jinja_whole(of))
                                               : *of;
}
