/*
 * encoding.h - text to ids: by a tokenizer of the worker's own where it was seen to agree with the
 * engine's, else by the engine. Agreement is found out on a corpus before first use, and anew
 * whenever the engine was doubted. Awaits; tries once.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_ENCODING_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_ENCODING_H

#include "workers/engines/server/engine_state.h"

/* The tokenizers of a worker, from tokenizer.json files; the first that agrees is an engine's. */
enum { TOKENIZERS_MAX = 8 };
struct tokenizers {
    struct tokenizer *list[TOKENIZERS_MAX];
    const char *paths[TOKENIZERS_MAX]; /* borrowed */
    size_t count;
};

int tokenizers_add(struct tokenizers *tokenizers, const char *path, struct fail *fail);
void tokenizers_finish(struct tokenizers *tokenizers);

/* As the dialect's tokenize. */
int engine_encode(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                  struct fail *fail);
/* Finds out which tokenizer agrees, unless that is known. */
int engine_learn_tokenizer(struct engine *engine, struct fail *fail);

#endif
