/*
 * special_tokens.h - which tokens of an engine are special, and where their names stand in a text. Found
 * by asking: a special token is read as such from its name, and never from plain text. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_SPECIAL_TOKENS_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_SPECIAL_TOKENS_H

#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/bridge.h"

enum { SPECIALS_MAX = 256 }; /* different ones of one text */

struct specials { /* free with special_tokens_finish */
    struct turn_template_special list[SPECIALS_MAX];
    size_t count;
};

/* Whether the tokenizer knows `id` as a special token: read as such, but never from plain text. */
int engine_is_special(struct engine *engine, uint32_t id, bool *ret, struct fail *fail);

/* Adds those among the tokens of `text`. -ENOTSUP when there are too many. */
int special_tokens_find(struct engine *engine, struct slice text, struct specials *ret, struct fail *fail);
void special_tokens_finish(struct specials *specials);

/* Whether a name stands anywhere in the text. */
bool special_tokens_occur(const struct specials *specials, struct slice text);

#endif
