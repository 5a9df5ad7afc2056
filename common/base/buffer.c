#include "common/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint8_t *buffer_reserve(struct buffer *buffer, size_t len)
{
    if (buffer->failed)
        return NULL;
    if (len <= buffer->capacity - buffer->len && buffer->data)
        return buffer->data + buffer->len;
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    while (capacity - buffer->len < len) {
        if (capacity > SIZE_MAX / 2) {
            buffer->failed = true;
            return NULL;
        }
        capacity *= 2;
    }
    uint8_t *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = true;
        return NULL;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return data + buffer->len;
}

bool buffer_append(struct buffer *buffer, const void *data, size_t len)
{
    uint8_t *at = buffer_reserve(buffer, len);
    if (!at)
        return false;
    if (len)
        memcpy(at, data, len);
    buffer->len += len;
    return true;
}

bool buffer_append_str(struct buffer *buffer, const char *text) { return buffer_append(buffer, text, strlen(text)); }

bool buffer_append_quoted(struct buffer *buffer, const char *text)
{
    buffer_append_str(buffer, "'");
    for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1) {
        buffer_append(buffer, text, (size_t)(quote - text));
        buffer_append_str(buffer, "'\\''");
    }
    buffer_append_str(buffer, text);
    return buffer_append_str(buffer, "'");
}

bool buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *at = len < 0 ? NULL : (char *)buffer_reserve(buffer, (size_t)len + 1);
    if (!at) {
        buffer->failed = true;
        return false;
    }
    va_start(args, format);
    vsnprintf(at, (size_t)len + 1, format, args);
    va_end(args);
    buffer->len += (size_t)len;
    return true;
}

void buffer_clear(struct buffer *buffer)
{
    buffer->len = 0;
    buffer->failed = false;
}

void buffer_finish(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}

char *buffer_take_str(struct buffer *buffer)
{
    if (!buffer_append(buffer, "", 1)) {
        buffer_finish(buffer);
        return NULL;
    }
    char *text = (char *)buffer->data;
    *buffer = (struct buffer){0};
    return text;
}
