#include "workers/tokenizer/vocabulary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- hashing ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0xd6e8feb86659fd93);
    value ^= value >> 32;
    value *= UINT64_C(0xd6e8feb86659fd93);
    return value ^ value >> 32;
}

static uint64_t hash_bytes(uint64_t seed, struct slice bytes)
{
    uint64_t hash = mix(seed ^ bytes.len);
    for (size_t i = 0; i < bytes.len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes.data + i, bytes.len - i < 8 ? bytes.len - i : 8);
        hash = mix(hash + seed + word);
    }
    return hash;
}

static uint64_t hash_pair(uint64_t seed, uint32_t left, uint32_t right) { return mix(mix(seed ^ left) + seed + right); }

static size_t places_for(size_t count)
{
    size_t places = 16;
    while (places < count * 2)
        places *= 2;
    return places;
}

/* ---- tokens ------------------------------------------------------------------------------ */

bool vocabulary_init(struct vocabulary *vocabulary, size_t id_end, size_t tokens, size_t merges)
{
    *vocabulary = (struct vocabulary){
        .token_capacity = id_end, .place_count = places_for(tokens), .merge_places = places_for(merges)};
    if (getrandom(&vocabulary->seed, sizeof(vocabulary->seed), 0) < 0)
        vocabulary->seed = (uintptr_t)vocabulary;
    vocabulary->tokens = calloc(id_end + 1, sizeof(*vocabulary->tokens));
    vocabulary->by_bytes = calloc(vocabulary->place_count, sizeof(*vocabulary->by_bytes));
    vocabulary->merges = calloc(vocabulary->merge_places, sizeof(*vocabulary->merges));
    if (!vocabulary->tokens || !vocabulary->by_bytes || !vocabulary->merges)
        return false;
    memset(vocabulary->by_bytes, 0xff, vocabulary->place_count * sizeof(*vocabulary->by_bytes));
    memset(vocabulary->merges, 0xff, vocabulary->merge_places * sizeof(*vocabulary->merges));
    return true;
}

void vocabulary_finish(struct vocabulary *vocabulary)
{
    buffer_finish(&vocabulary->bytes);
    free(vocabulary->tokens);
    free(vocabulary->by_bytes);
    free(vocabulary->merges);
    *vocabulary = (struct vocabulary){0};
}

struct slice vocabulary_get(const struct vocabulary *vocabulary, uint32_t id)
{
    if (id >= vocabulary->token_capacity)
        return (struct slice){0};
    return slice_of(vocabulary->bytes.data + vocabulary->tokens[id].at, vocabulary->tokens[id].len);
}

/* Where these bytes are, or would be. */
static int32_t *place_of(const struct vocabulary *vocabulary, struct slice bytes)
{
    size_t at = hash_bytes(vocabulary->seed, bytes) & (vocabulary->place_count - 1);
    while (vocabulary->by_bytes[at] != VOCABULARY_NONE &&
           !slice_equal(vocabulary_get(vocabulary, (uint32_t)vocabulary->by_bytes[at]), bytes))
        at = (at + 1) & (vocabulary->place_count - 1);
    return &vocabulary->by_bytes[at];
}

bool vocabulary_add(struct vocabulary *vocabulary, uint32_t id, struct slice bytes)
{
    int32_t *place = place_of(vocabulary, bytes);
    if (id >= vocabulary->token_capacity || vocabulary->tokens[id].len > 0 || *place != VOCABULARY_NONE)
        return false;
    vocabulary->tokens[id] = (struct vocabulary_token){(uint32_t)vocabulary->bytes.len, (uint32_t)bytes.len};
    *place = (int32_t)id;
    return buffer_append(&vocabulary->bytes, bytes.data, bytes.len);
}

int32_t vocabulary_find(const struct vocabulary *vocabulary, struct slice bytes)
{
    return *place_of(vocabulary, bytes);
}

/* ---- merges ------------------------------------------------------------------------------ */

static struct vocabulary_merge *merge_place(const struct vocabulary *vocabulary, uint32_t left, uint32_t right)
{
    size_t at = hash_pair(vocabulary->seed, left, right) & (vocabulary->merge_places - 1);
    struct vocabulary_merge *merge = &vocabulary->merges[at];
    while (merge->left != UINT32_MAX && !(merge->left == left && merge->right == right)) {
        at = (at + 1) & (vocabulary->merge_places - 1);
        merge = &vocabulary->merges[at];
    }
    return merge;
}

void vocabulary_add_merge(struct vocabulary *vocabulary, struct vocabulary_merge merge)
{
    struct vocabulary_merge *place = merge_place(vocabulary, merge.left, merge.right);
    if (place->left == UINT32_MAX)
        *place = merge;
}

const struct vocabulary_merge *vocabulary_find_merge(const struct vocabulary *vocabulary, uint32_t left, uint32_t right)
{
    const struct vocabulary_merge *merge = merge_place(vocabulary, left, right);
    return merge->left == UINT32_MAX ? NULL : merge;
}
