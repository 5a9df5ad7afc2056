/* tokenizer_inside.h - a tokenizer as its own files see it. */
#ifndef SLUICE_WORKERS_TOKENIZER_TOKENIZER_INSIDE_H
#define SLUICE_WORKERS_TOKENIZER_TOKENIZER_INSIDE_H

#include "workers/tokenizer/added.h"
#include "workers/tokenizer/bpe.h"
#include "workers/tokenizer/split.h"
#include "workers/tokenizer/tokenizer.h"
#include "workers/tokenizer/vocabulary.h"

struct tokenizer {
    struct vocabulary vocabulary;
    struct vocabulary names; /* of added tokens, which need not be in the vocabulary */
    struct added added;
    struct splits splits;
    struct bpe bpe;
    uint32_t bytes[256];   /* the token of each byte; UINT32_MAX: there is none */
    bool ignores_merges;   /* a piece that is a token as a whole becomes it */
    bool normalizes;       /* to NFC */
    bool normalizes_names; /* names of added tokens are looked for in what was normalized */
    size_t id_end;
};

#endif
