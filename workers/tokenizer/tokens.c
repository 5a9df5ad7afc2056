/* tokens.c - arrays of token ids, and what a generation owns. */
#include "workers/tokenizer/tokens.h"

#include <stdlib.h>

bool tokens_append(struct tokens *tokens, const uint32_t *ids, size_t count)
{
    if (count > SIZE_MAX / sizeof(*ids) / 2 - tokens->count)
        return false;
    if (tokens->count + count > tokens->capacity) {
        size_t capacity = (tokens->count + count) * 3 / 2 + 16;
        uint32_t *grown = realloc(tokens->ids, capacity * sizeof(*grown));
        if (!grown)
            return false;
        tokens->ids = grown;
        tokens->capacity = capacity;
    }
    if (count > 0)
        memcpy(tokens->ids + tokens->count, ids, count * sizeof(*ids));
    tokens->count += count;
    return true;
}

bool tokens_equal(const struct tokens *a, const struct tokens *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->ids, b->ids, a->count * sizeof(*a->ids)) == 0);
}

bool tokens_have(const struct tokens *tokens, uint32_t id)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->ids[i] == id)
            return true;
    return false;
}

bool tokens_write(const struct tokens *tokens, struct buffer *ret)
{
    buffer_append(ret, "[", 1);
    for (size_t i = 0; i < tokens->count; i++) {
        char digits[12];
        size_t at = sizeof(digits);
        uint32_t id = tokens->ids[i];
        do
            digits[--at] = (char)('0' + id % 10);
        while ((id /= 10) > 0);
        if (i > 0)
            digits[--at] = ',';
        buffer_append(ret, digits + at, sizeof(digits) - at);
    }
    return buffer_append(ret, "]", 1);
}

void tokens_finish(struct tokens *tokens)
{
    free(tokens->ids);
    *tokens = (struct tokens){0};
}
