#include "client/trace/values.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"

json_t *value_text(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    AUTO_FREE char *repaired = strdup(text);
    if (!repaired)
        return NULL;
    text_repair(repaired);
    return json_string(repaired);
}

void value_set(json_t *object, const char *key, json_t *value)
{
    if (value)
        json_object_set_new(object, key, value);
}

void value_set_text(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        value_set(object, key, value_text(text));
}

bool value_append(struct buffer *out, json_t *value)
{
    AUTO_FREE char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(value);
    return text && buffer_append_str(out, text);
}

/* As \\uXXXX, or two of them. */
static void put_escape(struct buffer *out, uint32_t character)
{
    char text[16];
    int len;
    if (character < 0x10000)
        len = snprintf(text, sizeof(text), "\\u%04x", character);
    else
        len = snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xd800 + ((character - 0x10000) >> 10),
                       0xdc00 + ((character - 0x10000) & 0x3ff));
    buffer_append(out, text, (size_t)len);
}

static bool is_plain(uint8_t byte) { return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\'; }

void value_put_text(struct buffer *out, const char *text)
{
    struct slice left = slice_from_str(text);
    buffer_append(out, "\"", 1);
    while (left.len > 0) {
        size_t len = 0;
        while (len < left.len && is_plain(left.data[len]))
            len++;
        buffer_append(out, left.data, len);
        left = slice_of(left.data + len, left.len - len);
        if (!left.len)
            break;
        len = utf8_sequence(left);
        put_escape(out, len ? utf8_character(left.data, len) : '?');
        len += !len;
        left = slice_of(left.data + len, left.len - len);
    }
    buffer_append(out, "\"", 1);
}

void value_put_real(struct buffer *out, double number)
{
    char text[40];
    int len = snprintf(text, sizeof(text), "%.15g", number);
    if (strtod(text, NULL) != number)
        len = snprintf(text, sizeof(text), "%.17g", number);
    buffer_append(out, text, (size_t)len);
}

void value_hex(const uint8_t *bytes, size_t count, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * count] = '\0';
}
