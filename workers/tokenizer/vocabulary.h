/*
 * vocabulary.h - a tokenizer's tokens by id and by bytes, and what pairs of them merge into. Hashed
 * with a seed of its own, since the file may be anybody's.
 */
#ifndef SLUICE_WORKERS_TOKENIZER_VOCABULARY_H
#define SLUICE_WORKERS_TOKENIZER_VOCABULARY_H

#include "common/base/buffer.h"

enum { VOCABULARY_NONE = -1 };

struct vocabulary_token {
    uint32_t at, len; /* in bytes.data; len 0: no such id */
};

struct vocabulary_merge {
    uint32_t left, right, merged, rank; /* left == right == UINT32_MAX: a free place */
};

struct vocabulary {
    struct buffer bytes;
    struct vocabulary_token *tokens;
    size_t token_capacity;
    int32_t *by_bytes; /* open addressing, a power of two: ids or VOCABULARY_NONE */
    size_t place_count;
    struct vocabulary_merge *merges;
    size_t merge_places;
    uint64_t seed;
};

/* Room for `tokens` tokens with ids below `id_end` and for `merges`; false: no memory. */
bool vocabulary_init(struct vocabulary *vocabulary, size_t id_end, size_t tokens, size_t merges);
void vocabulary_finish(struct vocabulary *vocabulary);

/* False when the id or the bytes are there already, or there is no memory. */
bool vocabulary_add(struct vocabulary *vocabulary, uint32_t id, struct slice bytes);
int32_t vocabulary_find(const struct vocabulary *vocabulary, struct slice bytes); /* or NONE */
/* An id that there is not has no bytes. */
struct slice vocabulary_get(const struct vocabulary *vocabulary, uint32_t id);

/* Nothing where the pair is there already: its first rank stays. */
void vocabulary_add_merge(struct vocabulary *vocabulary, struct vocabulary_merge merge);
const struct vocabulary_merge *vocabulary_find_merge(const struct vocabulary *vocabulary, uint32_t left,
                                                     uint32_t right); /* or NULL */

#endif
