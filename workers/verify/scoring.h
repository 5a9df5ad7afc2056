/* scoring.h - each sampled token is scored anew. */
#ifndef SLUICE_WORKERS_VERIFY_SCORING_H
#define SLUICE_WORKERS_VERIFY_SCORING_H

#include "workers/verify/checks.h"
#include "workers/verify/report.h"
#include "workers/verify/sample.h"
#include "workers/verify/verify.h"

/* Awaits. What cannot be scored is counted as unscored; negative only where nothing more can be. */
int scoring_run(struct verify_engine *engine, const struct sample *given, const struct verify_options *options,
                uint64_t *done, struct report *ret, struct fail *fail);

#endif
