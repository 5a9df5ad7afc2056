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
    return jinja_string(jinja_strip(jinja_str(run, of).text, characters, JINJA_BOTH));
}

JINJA_FILTER(upper) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_UPPER); }
JINJA_FILTER(lower) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_LOWER); }
JINJA_FILTER(capitalize) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_CAPITAL); }
JINJA_FILTER(title) { return (void)given, jinja_recase(run, jinja_str(run, of).text, JINJA_TITLE); }
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

/* Each line but the first, and no empty one. */
JINJA_FILTER(indent)
{
    const int64_t width = jinja_argument_whole(run, given, 0, "width", 4);
    bool indents = jinja_argument_true(given, 1, "first");
    const bool indents_blank = jinja_argument_true(given, 2, "blank");
    struct jinja_value lines = jinja_split_lines(run, jinja_str(run, of).text, true);
    struct buffer out = {0};
    if (width < 0 || width > 1000)
        jinja_fail(run, "indent wants a width of 0 to 1000");
    for (size_t i = 0; i < lines.list->count && run->code == 0; i++, indents = true) {
        const struct slice line = lines.list->items[i].text;
        if (indents && (indents_blank || !slice_is(line, "\n")))
            buffer_printf(&out, "%*s", (int)width, "");
        buffer_append(&out, line.data, line.len);
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
    for (size_t i = 0; i < items->count && run->code == 0; i++) {
        const struct jinja_value item = attribute ? jinja_attribute(&items->items[i], *attribute) : items->items[i];
        if (i && separator)
            buffer_append(&out, separator->data, separator->len);
        jinja_write(run, &item, &out);
    }
    return jinja_string_of(run, &out);
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

JINJA_FILTER(to_int)
{
    const struct jinja_value text = of->kind == JINJA_STRING ? jinja_string(text_strip(of->text)) : *of;
    char digits[32], *end;
    if (jinja_is_number(of))
        return jinja_integer(of->kind == JINJA_REAL ? (int64_t)of->real : jinja_whole(of));
    if (text.kind == JINJA_STRING && text.text.len > 0 && text.text.len < sizeof(digits)) {
        memcpy(digits, text.text.data, text.text.len);
        digits[text.text.len] = '\0';
        errno = 0;
        const int64_t value = strtoll(digits, &end, 10);
        if (!*end && !errno)
            return jinja_integer(value);
    }
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
    return (void)given, of->kind == JINJA_REAL ? jinja_real(of->real < 0 ? -of->real : of->real)
                        : jinja_is_whole(of)   ? jinja_integer(jinja_whole(of) < 0 ? -jinja_whole(of) : jinja_whole(of))
                                               : *of;
}
