/*
 * split.h - the pre-tokenizers of a tokenizer.json: regular expressions, each applied to the pieces
 * that those before left. Matches and what lies between them are pieces of their own.
 */
#ifndef SLUICE_WORKERS_TOKENIZER_SPLIT_H
#define SLUICE_WORKERS_TOKENIZER_SPLIT_H

#include <jansson.h>

#include "workers/tokenizer/tokenizer.h"

struct split; /* one expression */

struct splits {
    struct split *list[TOKENIZER_SPLITS_MAX];
    size_t count;
};

/* Reads "pre_tokenizer". -EINVAL with a sentence; splits_finish it also then. */
int splits_read(struct splits *splits, const json_t *pre_tokenizer, struct fail *fail);
void splits_finish(struct splits *splits);

/*
 * Calls `take` with each piece of the text, in order, until it returns another value than 0, which
 * is returned then. -ENOTSUP when an expression takes too long over it. The text is valid UTF-8.
 */
int splits_run(const struct splits *splits, struct slice text, int (*take)(void *arg, struct slice piece), void *arg);

#endif
