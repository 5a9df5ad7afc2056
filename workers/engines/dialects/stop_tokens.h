/* stop_tokens.h - the tokens that end a turn, as they are known and as they are learnt. */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_STOP_TOKENS_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_STOP_TOKENS_H

#include "workers/engines/server/engine_state.h"

bool stop_tokens_have(const struct tokens *ends, uint32_t id);
/*
 * No id but the last is one that ends a turn. The last id does exactly when the engine says so, but for a turn whose last token allowed
 * was its end: some engines call that cut, and it becomes "stop". An end that is new must be a
 * special token, and is learnt. -EPROTO with a sentence; awaits.
 */
int stop_tokens_check(struct engine *engine, struct generation *generation, struct fail *fail);

#endif
