#include "client/gateway/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/utf8.h"

static void append_escaped(struct buffer *out, uint8_t c)
{
    switch (c) {
    case '"': buffer_append_str(out, "\\\""); break;
    case '\\': buffer_append_str(out, "\\\\"); break;
    case '\n': buffer_append_str(out, "\\n"); break;
    case '\t': buffer_append_str(out, "\\t"); break;
    case '\r': buffer_append_str(out, "\\r"); break;
    default: buffer_printf(out, "\\u%04x", c);
    }
}

void json_text_append(struct buffer *out, struct slice text)
{
    if (!text.data) /* of which no byte may be pointed at */
        text = slice_of("", 0);
    buffer_append(out, "\"", 1);
    for (size_t at = 0, from = 0; at <= text.len;) {
        const uint8_t c = at < text.len ? text.data[at] : 0;
        const size_t len = at < text.len && c >= 0x80 ? utf8_sequence(slice_of(text.data + at, text.len - at)) : 1;
        if (at < text.len && len > 0 && c >= ' ' && c != '"' && c != '\\' && c != 0x7f) {
            at += len;
            continue;
        }
        buffer_append(out, text.data + from, at - from);
        if (at < text.len && len == 0)
            buffer_append_str(out, "\xef\xbf\xbd");
        else if (at < text.len)
            append_escaped(out, c);
        from = ++at;
    }
    buffer_append(out, "\"", 1);
}

void json_text_append_number(struct buffer *out, double number)
{
    char text[40];
    if (!isfinite(number)) {
        buffer_append_str(out, "null");
        return;
    }
    snprintf(text, sizeof(text), "%.15g", number);
    if (strtod(text, NULL) != number)
        snprintf(text, sizeof(text), "%.17g", number);
    buffer_append_str(out, text);
    if (!strpbrk(text, ".e"))
        buffer_append_str(out, ".0");
}

static void append_object(struct buffer *out, const json_t *object)
{
    const char *name, *joint = "{";
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        buffer_append_str(out, joint);
        json_text_append(out, slice_from_str(name));
        buffer_append_str(out, ":");
        json_text_append_value(out, value);
        joint = ",";
    }
    buffer_append_str(out, *joint == '{' ? "{}" : "}");
}

static void append_array(struct buffer *out, const json_t *array)
{
    buffer_append_str(out, "[");
    for (size_t i = 0; i < json_array_size(array); i++) {
        buffer_append_str(out, i ? "," : "");
        json_text_append_value(out, json_array_get(array, i));
    }
    buffer_append_str(out, "]");
}

void json_text_append_value(struct buffer *out, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: append_object(out, value); break;
    case JSON_ARRAY: append_array(out, value); break;
    case JSON_STRING: json_text_append(out, slice_of(json_string_value(value), json_string_length(value))); break;
    case JSON_INTEGER: buffer_printf(out, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: json_text_append_number(out, json_real_value(value)); break;
    case JSON_TRUE: buffer_append_str(out, "true"); break;
    case JSON_FALSE: buffer_append_str(out, "false"); break;
    case JSON_NULL: buffer_append_str(out, "null"); break;
    }
}

json_t *json_text_read(struct slice text) { return json_loadb((const char *)text.data, text.len, 0, NULL); }

void json_text_printf(struct buffer *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (const char *at; (at = strchr(format, '%')); format = at + 2) {
        buffer_append(out, format, (size_t)(at - format));
        switch (at[1]) {
        case 's': json_text_append(out, slice_from_str(va_arg(args, const char *))); break;
        case 'j': buffer_append_str(out, va_arg(args, const char *)); break;
        case 'd': buffer_printf(out, "%lld", (long long)va_arg(args, int64_t)); break;
        case 'u': buffer_printf(out, "%llu", (unsigned long long)va_arg(args, uint64_t)); break;
        case 'g': json_text_append_number(out, va_arg(args, double)); break;
        default: abort();
        }
    }
    buffer_append_str(out, format);
    va_end(args);
}
