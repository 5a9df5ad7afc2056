#include "workers/engines/jinja/values/json_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

static bool is_plain(uint8_t c) { return c >= 0x20 && c != '"' && c != '\\'; }

static void write_escape(struct jinja_run *run, uint8_t c, struct buffer *out)
{
    static const char named[] = "\n\r\t\b\f\"\\", letters[] = "nrtbf\"\\";
    const char *found = c ? strchr(named, c) : NULL;
    char text[8];
    if (found)
        snprintf(text, sizeof(text), "\\%c", letters[found - named]);
    else
        snprintf(text, sizeof(text), "\\u%04x", c);
    jinja_append_str(run, out, text);
}

static void write_string(struct jinja_run *run, struct slice text, struct buffer *out)
{
    jinja_append_str(run, out, "\"");
    jinja_spend(run, text.len);
    for (size_t at = 0, len; at < text.len && run->code == 0; at += len) {
        for (len = 0; at + len < text.len && is_plain(text.data[at + len]);)
            len++;
        jinja_append(run, out, text.data + at, len);
        if (at + len < text.len)
            write_escape(run, text.data[at + len++], out);
    }
    jinja_append_str(run, out, "\"");
}

struct json_style {
    unsigned indent, level;
};

static void write(struct jinja_run *run, const struct jinja_value *value, struct json_style style, struct buffer *out);

/* What stands before an element, or the end. */
static void write_break(struct jinja_run *run, struct json_style style, bool is_first, bool is_end, struct buffer *out)
{
    if (!is_first && !is_end)
        jinja_append_str(run, out, style.indent ? "," : ", ");
    if (!style.indent || (is_end && is_first))
        return;
    jinja_append_str(run, out, "\n");
    for (unsigned i = 0; run->code == 0 && i < style.indent * (style.level - is_end); i++)
        jinja_append_str(run, out, " ");
}

static void write_list(struct jinja_run *run, const struct jinja_list *list, struct json_style style,
                       struct buffer *out)
{
    style.level++;
    jinja_refuse_view(run, list);
    jinja_append_str(run, out, "[");
    for (size_t i = 0; i < list->count && run->code == 0; i++) {
        write_break(run, style, i == 0, false, out);
        write(run, &list->items[i], style, out);
    }
    write_break(run, style, list->count == 0, true, out);
    jinja_append_str(run, out, "]");
}

/* Python's names of what is no text are written in quotes. */
static void write_key(struct jinja_run *run, const struct jinja_value *key, struct buffer *out)
{
    const bool is_text = key->kind == JINJA_STRING;
    if (key->kind == JINJA_LIST || key->kind == JINJA_DICT || key->kind == JINJA_UNDEFINED)
        jinja_fail(run, "JSON has no name of type %s", jinja_kind_word(key));
    jinja_append_str(run, out, is_text ? "" : "\"");
    write(run, key, (struct json_style){0}, out);
    jinja_append_str(run, out, is_text ? ": " : "\": ");
}

static void write_dict(struct jinja_run *run, const struct jinja_dict *dict, struct json_style style,
                       struct buffer *out)
{
    style.level++;
    jinja_append_str(run, out, "{");
    for (size_t i = 0; i < dict->count && run->code == 0; i++) {
        write_break(run, style, i == 0, false, out);
        write_key(run, &dict->pairs[i].key, out);
        write(run, &dict->pairs[i].value, style, out);
    }
    write_break(run, style, dict->count == 0, true, out);
    jinja_append_str(run, out, "}");
}

static void write_real(struct jinja_run *run, const struct jinja_value *value, struct buffer *out)
{
    if (isfinite(value->real))
        jinja_write_repr(run, value, out);
    else
        jinja_append_str(run, out, isnan(value->real) ? "NaN" : value->real > 0 ? "Infinity" : "-Infinity");
}

static void write(struct jinja_run *run, const struct jinja_value *value, struct json_style style, struct buffer *out)
{
    if (!jinja_spend(run, 0))
        return;
    switch (value->kind) {
    case JINJA_NONE: jinja_append_str(run, out, "null"); return;
    case JINJA_BOOL: jinja_append_str(run, out, value->truth ? "true" : "false"); return;
    case JINJA_INTEGER: jinja_write_repr(run, value, out); return;
    case JINJA_REAL: write_real(run, value, out); return;
    case JINJA_STRING: write_string(run, value->text, out); return;
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
