/*
 * special_tokens.h - which tokens of an engine are special, and where their names stand in a text. Found
 * by asking: a special token is read as such from its name, and never from plain text. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_TEMPLATE_SPECIAL_TOKENS_H
#define SLUICE_WORKERS_ENGINES_TEMPLATE_SPECIAL_TOKENS_H

#include "workers/engines/dialects/dialect.h"

enum { SPECIALS_MAX = 256 }; /* different ones of one text */

struct specials { /* free with special_tokens_finish */
    struct turn_template_special list[SPECIALS_MAX];
    size_t count;
};

/* Adds those among the tokens of `text`. -ENOTSUP when there are too many. */
int special_tokens_find(struct engine *engine, struct slice text, struct specials *ret,
                  struct fail *fail);
void special_tokens_finish(struct specials *specials);

/* Whether a name stands anywhere in the text. */
bool special_tokens_occur(const struct specials *specials, struct slice text);

#endif
