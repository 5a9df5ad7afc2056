/* remaking.h - what was given to the model is made again. */
#ifndef SLUICE_WORKERS_VERIFY_REMAKING_H
#define SLUICE_WORKERS_VERIFY_REMAKING_H

#include "workers/verify/checks.h"
#include "workers/verify/report.h"
#include "workers/verify/sample.h"

/* Awaits. Each given turn that is not what the engine makes of the messages is counted as altered. */
int remaking_run(struct verify_engine *engine, const struct sample *given, size_t trace, struct report *ret,
                 struct fail *fail);

#endif
