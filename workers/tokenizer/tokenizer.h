/*
 * tokenizer.h - a model's tokenizer, read from its tokenizer.json: byte-level BPE as GPT-2, Llama 3,
 * Qwen and SmolLM have it. Everything of a file that could change ids and is not known here makes
 * it refused, by name; a text that cannot be done exactly is -ENOTSUP, and another must be asked.
 * Pure: no I/O but tokenizer_load, and no waiting. One thread.
 *
 * A text is cut at the names of added tokens, each rest is split by the file's pre-tokenizers, and
 * of each piece those two neighbours are merged first whose merge has the lowest rank.
 */
#ifndef SLUICE_WORKERS_TOKENIZER_TOKENIZER_H
#define SLUICE_WORKERS_TOKENIZER_TOKENIZER_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/tokenizer/tokens.h"

/* Of a file, and of a text to encode. */
enum {
    TOKENIZER_FILE_MAX = 64 << 20,
    TOKENIZER_TOKENS_MAX = 1 << 20, /* ids are below it; merges as many */
    TOKENIZER_TOKEN_BYTES_MAX = 1024,
    TOKENIZER_ADDED_MAX = 1 << 14,
    TOKENIZER_SPLITS_MAX = 8,
    TOKENIZER_PATTERN_MAX = 4096,
    TOKENIZER_TEXT_MAX = 256 << 10 /* what keeps a worker from its other rollouts for 0.1 s */
};

struct tokenizer;

/* -EINVAL with a sentence when the file is refused. */
int tokenizer_parse(struct slice json, struct tokenizer **ret, struct fail *fail);
int tokenizer_load(const char *path, struct tokenizer **ret, struct fail *fail);
void tokenizer_destroy(struct tokenizer **tokenizer);

/*
 * specials: names of special tokens become these; else they are text, as the names of those added
 * tokens that the file does not call special never are. -ENOTSUP, -ENOMEM; *ret is as it was then.
 */
int tokenizer_encode(struct tokenizer *tokenizer, struct slice text, bool specials, struct tokens *ret,
                     struct fail *fail);
/*
 * The same for who has no engine to ask: a text that has to be normalized is. What an engine does with such a text,
 * which need not be what its tokenizer.json says, is what tokenizer_encode leaves to it.
 */
int tokenizer_encode_alone(struct tokenizer *tokenizer, struct slice text, bool specials, struct tokens *ret,
                           struct fail *fail);
uint64_t tokenizer_id_end(const struct tokenizer *tokenizer); /* ids are below it */
/* Bytes, which need not be whole characters. False for an id that there is not, or no memory. */
bool tokenizer_decode(const struct tokenizer *tokenizer, const struct tokens *ids, struct buffer *ret);

#endif
