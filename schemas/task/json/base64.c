#include "schemas/task/json/base64.h"

static int digit(uint8_t c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Four digits, the last `padding` of them '='; the bits they leave over must be 0. */
static bool decode_four(const uint8_t *in, unsigned padding, uint8_t *ret)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        int value = i < 4 - padding ? digit(in[i]) : 0;
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
    }
    for (unsigned i = 0; i < 3 - padding; i++)
        ret[i] = (uint8_t)(bits >> (16 - 8 * i));
    return (bits & ((1u << 8 * padding) - 1)) == 0;
}

bool base64_decode(struct slice text, uint8_t *ret, size_t *ret_len)
{
    if (text.len % 4)
        return false;
    size_t len = 0;
    for (size_t at = 0; at < text.len; at += 4) {
        const uint8_t *four = text.data + at;
        bool last = at + 4 == text.len;
        unsigned padding = !last || four[3] != '=' ? 0 : four[2] == '=' ? 2 : 1;
        if (!decode_four(four, padding, ret + len))
            return false;
        len += 3 - padding;
    }
    *ret_len = len;
    return true;
}
