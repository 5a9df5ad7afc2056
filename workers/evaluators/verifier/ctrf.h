/*
 * ctrf.h - a report of tests in the Common Test Report Format (ctrf.io), as pytest-json-ctrf writes it: its tests
 * become a verdict's. `passed` and `failed` are those words; `skipped` and `pending` are skipped, `other` is an error.
 * Durations are milliseconds.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_VERIFIER_CTRF_H
#define SLUICE_WORKERS_EVALUATORS_VERIFIER_CTRF_H

#include "common/base/fail.h"
#include "schemas/trajectory/verdict.h"

enum { CTRF_BYTES_MAX = 4 << 20, CTRF_NODES_MAX = 1 << 18 }; /* what is longer is not read */

/* False with a sentence: it is no such report, and the verdict is as it was, or has the tests before what is none. */
bool ctrf_read(struct slice text, struct verdict *verdict, struct fail *fail);

#endif
