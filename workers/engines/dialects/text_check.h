/*
 * text_check.h - what a reply says, for the dialects whose answers do not tell the bytes of each token:
 * what its ids decode to. An answer whose own text is another is refused. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_TEXT_CHECK_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_TEXT_CHECK_H

#include "workers/engines/server/engine_state.h"

/*
 * Sets the text, without the end token; where there is one, of the answer, it must be what the ids
 * say: by a tokenizer of the worker's that agrees with the engine's, else by its /detokenize. Where
 * that drops blanks (info.drops_blanks), the answer's count. -EPROTO.
 */
int text_check_check(struct engine *engine, struct generation *generation, struct fail *fail);

#endif
