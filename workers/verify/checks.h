/* checks.h - what can be checked of a trajectory without scoring it. */
#ifndef SLUICE_WORKERS_VERIFY_CHECKS_H
#define SLUICE_WORKERS_VERIFY_CHECKS_H

#include "workers/engines/engine.h"
#include "workers/verify/report.h"
#include "workers/verify/sample.h"

struct verify_engine { /* what the engine says of itself, and what was learnt of it on the way */
    struct engine *engine;
    struct engine_about about;
    struct tokens ends; /* ids that end a turn */
};
/* Awaits: asks the engine about ids that it has not been asked about. */
int checks_run(struct verify_engine *engine, const struct sample *given, struct report *ret, struct fail *fail);
/* Whether the trace is of this engine's model; else counted. */
bool checks_are_ours(const struct verify_engine *engine, const struct sample *given, size_t trace, struct report *ret);

#endif
