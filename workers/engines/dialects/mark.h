/* mark.h - what a server is known by that lists its models at GET /v1/models. */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_MARK_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_MARK_H

#include "workers/engines/server/engine_state.h"

/*
 * For a dialect's identify: of what the route says of the model, of what template and tokenizer make of a
 * conversation (special_escape_mark), and of `more` ("" where there is nothing). Awaits; tries once.
 */
int mark_of_served(struct engine *engine, const char *more, struct engine_mark *ret, struct fail *fail);

#endif
