/* tokens.h - token ids in a row. */
#ifndef SLUICE_WORKERS_TOKENIZER_TOKENS_H
#define SLUICE_WORKERS_TOKENIZER_TOKENS_H

#include "common/base/buffer.h"

struct tokens { /* free with tokens_finish */
    uint32_t *ids;
    size_t count, capacity;
};
bool tokens_append(struct tokens *tokens, const uint32_t *ids, size_t count);
bool tokens_equal(const struct tokens *a, const struct tokens *b);
bool tokens_have(const struct tokens *tokens, uint32_t id);
bool tokens_write(const struct tokens *tokens, struct buffer *ret); /* as a JSON array */
void tokens_finish(struct tokens *tokens);

#endif
