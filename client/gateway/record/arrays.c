#include "client/gateway/record/arrays.h"

#include <stdio.h>
#include <string.h>

enum { ID_DIGITS = 12, FLOAT_DIGITS = 24 };

/* Digit by digit: printf is most of what a long answer costs. */
static size_t write_id(char *out, uint32_t id)
{
    char digits[ID_DIGITS];
    size_t count = 0, len = 0;
    do
        digits[count++] = (char)('0' + id % 10);
    while (id /= 10);
    while (count > 0)
        out[len++] = digits[--count];
    return len;
}

void arrays_append_ids(struct buffer *out, const uint32_t *ids, size_t count)
{
    buffer_append_str(out, "[");
    char *room = (char *)buffer_reserve(out, count * ID_DIGITS + 1);
    for (size_t i = 0; room && i < count; i++) {
        size_t len = 0;
        if (i > 0)
            room[len++] = ',';
        len += write_id(room + len, ids[i]);
        room += len;
        out->len += len;
    }
    buffer_append_str(out, "]");
}

void arrays_append_mask(struct buffer *out, const uint8_t *mask, size_t count)
{
    buffer_append_str(out, "[");
    char *room = (char *)buffer_reserve(out, 2 * count + 1);
    for (size_t i = 0; room && i < count; i++) {
        if (i > 0)
            *room++ = ',';
        *room++ = mask[i] ? '1' : '0';
        out->len += i > 0 ? 2 : 1;
    }
    buffer_append_str(out, "]");
}

void arrays_append_logprobs(struct buffer *out, const float *logprobs, size_t count)
{
    buffer_append_str(out, "[");
    for (size_t i = 0; i < count; i++) {
        char text[FLOAT_DIGITS + 4];
        snprintf(text, FLOAT_DIGITS, "%.9g", (double)logprobs[i]);
        if (!strpbrk(text, ".e"))
            strcat(text, ".0");
        buffer_append_str(out, i > 0 ? "," : "");
        buffer_append_str(out, text);
    }
    buffer_append_str(out, "]");
}
