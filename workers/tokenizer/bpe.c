#include "workers/tokenizer/bpe.h"

#include <stdlib.h>

struct bpe_symbol {
    uint32_t id;           /* UINT32_MAX: merged into one before it */
    uint32_t before, next; /* UINT32_MAX: none */
};

struct bpe_pair { /* two neighbours that merge, as they were when it was pushed */
    uint32_t rank, at;
    uint32_t left, right, merged;
};

static const uint32_t NONE = UINT32_MAX;

/* ---- the heap ---------------------------------------------------------------------------- */

static bool pair_is_before(const struct bpe_pair *a, const struct bpe_pair *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(struct bpe *bpe, struct bpe_pair pair)
{
    size_t at = bpe->heap_count++;
    while (at > 0 && pair_is_before(&pair, &bpe->heap[(at - 1) / 2])) {
        bpe->heap[at] = bpe->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    bpe->heap[at] = pair;
}

static struct bpe_pair heap_pop(struct bpe *bpe)
{
    const struct bpe_pair top = bpe->heap[0], last = bpe->heap[--bpe->heap_count];
    size_t at = 0, child;
    while ((child = at * 2 + 1) < bpe->heap_count) {
        if (child + 1 < bpe->heap_count && pair_is_before(&bpe->heap[child + 1], &bpe->heap[child]))
            child++;
        if (!pair_is_before(&bpe->heap[child], &last))
            break;
        bpe->heap[at] = bpe->heap[child];
        at = child;
    }
    bpe->heap[at] = last;
    return top;
}

/* ---- merging ----------------------------------------------------------------------------- */

/* Of n symbols there are n - 1 pairs, and each of fewer than n merges adds at most two. */
static bool reserve(struct bpe *bpe, size_t count)
{
    if (count <= bpe->capacity)
        return true;
    const size_t capacity = count + count / 2 + 64;
    struct bpe_symbol *symbols = reallocarray(bpe->symbols, capacity, sizeof(*symbols));
    if (symbols)
        bpe->symbols = symbols;
    struct bpe_pair *heap = reallocarray(bpe->heap, capacity * 3, sizeof(*heap));
    if (heap)
        bpe->heap = heap;
    if (!symbols || !heap)
        return false;
    bpe->capacity = capacity;
    return true;
}

static void push_pair(struct bpe *bpe, const struct vocabulary *vocabulary, uint32_t at)
{
    const uint32_t next = at == NONE ? NONE : bpe->symbols[at].next;
    if (next == NONE)
        return;
    const uint32_t left = bpe->symbols[at].id, right = bpe->symbols[next].id;
    const struct vocabulary_merge *merge = vocabulary_find_merge(vocabulary, left, right);
    if (merge)
        heap_push(bpe, (struct bpe_pair){merge->rank, at, left, right, merge->merged});
}

static void apply(struct bpe *bpe, const struct vocabulary *vocabulary, const struct bpe_pair *pair)
{
    struct bpe_symbol *left = &bpe->symbols[pair->at];
    if (left->id != pair->left || left->next == NONE || bpe->symbols[left->next].id != pair->right)
        return; /* one of them has merged with another since */
    struct bpe_symbol *right = &bpe->symbols[left->next];
    left->id = pair->merged;
    left->next = right->next;
    right->id = NONE;
    if (left->next != NONE)
        bpe->symbols[left->next].before = pair->at;
    push_pair(bpe, vocabulary, left->before);
    push_pair(bpe, vocabulary, pair->at);
}

bool bpe_encode(struct bpe *bpe, const struct vocabulary *vocabulary, const uint32_t bytes[256], struct slice piece,
                struct tokens *ret)
{
    if (!reserve(bpe, piece.len))
        return false;
    bpe->heap_count = 0;
    for (uint32_t i = 0; i < piece.len; i++)
        bpe->symbols[i] = (struct bpe_symbol){bytes[piece.data[i]], i ? i - 1 : NONE, i + 1 < piece.len ? i + 1 : NONE};
    for (uint32_t i = 0; i + 1 < piece.len; i++)
        push_pair(bpe, vocabulary, i);
    while (bpe->heap_count > 0) {
        const struct bpe_pair pair = heap_pop(bpe);
        apply(bpe, vocabulary, &pair);
    }
    for (uint32_t i = 0; i != NONE && i < piece.len; i = bpe->symbols[i].next)
        if (!tokens_append(ret, &bpe->symbols[i].id, 1))
            return false;
    return true;
}

void bpe_finish(struct bpe *bpe)
{
    free(bpe->symbols);
    free(bpe->heap);
    *bpe = (struct bpe){0};
}
