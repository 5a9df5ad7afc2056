/*
 * check.h - whether a live engine keeps what a dialect promises: the checks of
 * `sluice engine check URL`, one row of checks.def each, in that order. Runs on a loop of its own.
 */
#ifndef SLUICE_WORKERS_ENGINES_CHECK_CHECK_H
#define SLUICE_WORKERS_ENGINES_CHECK_CHECK_H

#include <stdio.h>

#include "workers/engines/engine.h"
#include "workers/engines/server/engine_state.h"

enum check_verdict { ENGINE_CHECK_PASS, ENGINE_CHECK_FAIL, ENGINE_CHECK_NOT_OFFERED };
enum check_status {
    ENGINE_CHECK_STATUS_WELL = 0,
    ENGINE_CHECK_STATUS_FAILED = 1, /* a check failed */
    ENGINE_CHECK_STATUS_NONE = 2    /* nobody there, or no engine that can be exact */
};

struct check_result {
    enum check_verdict verdict;
    char text[512]; /* a sentence */
};

enum check_name {
#define ENGINE_CHECK(name, doc) ENGINE_CHECK_##name,
#include "workers/engines/check/checks.def"
#undef ENGINE_CHECK
    ENGINE_CHECK_COUNT
};
const char *check_word(enum check_name name);

/* What the checks know of each other. */
struct check_run {
    struct engine *engine;
    struct loop *loop;
    struct tokens prompt, sampled; /* of the turn that was sampled; empty: none was */
    float *logprobs;
    char version[64];
};

/* One check; awaits. An error is a failed check with the error's sentence. */
typedef void check_run_one(struct check_run *run, struct check_result *ret);

/* All of them to `out`, as lines or as JSON. model_dirs: as a worker has them (models/model_dir.h), or NULL. */
enum check_status engine_check(const char *url, const struct model_dirs *model_dirs, bool is_json, FILE *out);

#endif
