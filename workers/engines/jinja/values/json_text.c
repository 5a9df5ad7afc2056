#include "workers/engines/jinja/values/json_text.h"

#include <math.h>

#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

static void write_string(struct slice text, struct buffer *out)
{
    static const char named[] = "\n\r\t\b\f\"\\", letters[] = "nrtbf\"\\";
    buffer_append_str(out, "\"");
    for (size_t i = 0; i < text.len; i++) {
        const char *found = text.data[i] ? strchr(named, text.data[i]) : NULL;
        if (found)
            buffer_printf(out, "\\%c", letters[found - named]);
        else if (text.data[i] < 0x20)
            buffer_printf(out, "\\u%04x", text.data[i]);
        else
            buffer_append(out, &text.data[i], 1);
    }
    buffer_append_str(out, "\"");
}

struct json_style {
    unsigned indent, level;
};

static void write(struct jinja_run *run, const struct jinja_value *value, struct json_style style, struct buffer *out);

/* What stands before an element, or the end. */
static void write_break(struct json_style style, bool is_first, bool is_end, struct buffer *out)
{
    if (!is_first && !is_end)
        buffer_append_str(out, style.indent ? "," : ", ");
    if (!style.indent || (is_end && is_first))
        return;
    buffer_append_str(out, "\n");
    for (unsigned i = 0; i < style.indent * (style.level - is_end); i++)
        buffer_append_str(out, " ");
}

static void write_list(struct jinja_run *run, const struct jinja_list *list, struct json_style style,
                       struct buffer *out)
{
    style.level++;
    buffer_append_str(out, "[");
    for (size_t i = 0; i < list->count && run->code == 0; i++) {
        write_break(style, i == 0, false, out);
        write(run, &list->items[i], style, out);
    }
    write_break(style, list->count == 0, true, out);
    buffer_append_str(out, "]");
}

/* Python's names of what is no text are written in quotes. */
static void write_key(struct jinja_run *run, const struct jinja_value *key, struct buffer *out)
{
    const bool is_text = key->kind == JINJA_STRING;
    if (key->kind == JINJA_LIST || key->kind == JINJA_DICT || key->kind == JINJA_UNDEFINED)
        jinja_fail(run, "JSON has no name of type %s", jinja_kind_word(key));
    buffer_append_str(out, is_text ? "" : "\"");
    write(run, key, (struct json_style){0}, out);
    buffer_append_str(out, is_text ? ": " : "\": ");
}

static void write_dict(struct jinja_run *run, const struct jinja_dict *dict, struct json_style style,
                       struct buffer *out)
{
    style.level++;
    buffer_append_str(out, "{");
    for (size_t i = 0; i < dict->count && run->code == 0; i++) {
        write_break(style, i == 0, false, out);
        write_key(run, &dict->pairs[i].key, out);
        write(run, &dict->pairs[i].value, style, out);
    }
    write_break(style, dict->count == 0, true, out);
    buffer_append_str(out, "}");
}

static void write_real(struct jinja_run *run, const struct jinja_value *value, struct buffer *out)
{
    if (isfinite(value->real))
        jinja_write_repr(run, value, out);
    else
        buffer_append_str(out, isnan(value->real) ? "NaN" : value->real > 0 ? "Infinity" : "-Infinity");
}

static void write(struct jinja_run *run, const struct jinja_value *value, struct json_style style, struct buffer *out)
{
    switch (value->kind) {
    case JINJA_NONE: buffer_append_str(out, "null"); return;
    case JINJA_BOOL: buffer_append_str(out, value->truth ? "true" : "false"); return;
    case JINJA_INTEGER: jinja_write_repr(run, value, out); return;
    case JINJA_REAL: write_real(run, value, out); return;
    case JINJA_STRING: write_string(value->text, out); return;
    case JINJA_LIST: write_list(run, value->list, style, out); return;
    case JINJA_DICT:
        if (!value->dict->is_namespace) {
            write_dict(run, value->dict, style, out);
            return;
        }
        break;
    default: break;
    }
    jinja_fail(run, "tojson does not write what is %s", jinja_kind_word(value));
}

void jinja_write_json(struct jinja_run *run, const struct jinja_value *value, unsigned indent, struct buffer *out)
{
    write(run, value, (struct json_style){.indent = indent}, out);
}
