/*
 * bpe.h - byte-pair merging of one piece: of all neighbours that merge, those with the lowest rank
 * first, of equals the leftmost, until none does. n log n in the piece's bytes.
 */
#ifndef SLUICE_WORKERS_TOKENIZER_BPE_H
#define SLUICE_WORKERS_TOKENIZER_BPE_H

#include "workers/tokenizer/tokens.h"
#include "workers/tokenizer/vocabulary.h"

struct bpe { /* room that is used again; empty to begin with, bpe_finish it */
    struct bpe_symbol *symbols;
    struct bpe_pair *heap;
    size_t capacity, heap_count;
};

/* bytes: the token of each single byte. False: no memory. */
bool bpe_encode(struct bpe *bpe, const struct vocabulary *vocabulary, const uint32_t bytes[256], struct slice piece,
                struct tokens *ret);
void bpe_finish(struct bpe *bpe);

#endif
