/*
 * doctor.h - `sluice-worker --doctor`: what this machine allows, the tier of sandbox that follows,
 * one sandbox made and used, and the limits that matter, each with its cure.
 */
#ifndef SLUICE_WORKERS_DOCTOR_DOCTOR_H
#define SLUICE_WORKERS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "workers/sandbox/probe/probe.h"

enum doctor_status {
    DOCTOR_WELL = 0,
    DOCTOR_WEAK = 1, /* sandboxes work; a weaker tier, or a limit is low */
    DOCTOR_NONE = 2, /* this machine can make no sandbox */
};

struct doctor_limit {
    const char *name, *unit;
    bool is_known, is_ok;
    uint64_t value, wanted;
    const char *use, *remedy;
};

enum { DOCTOR_LIMITS = 16 };

struct doctor_report {
    struct probe probe;
    enum tier tier;
    bool is_forced;   /* by --sandbox */
    char cache[512];  /* where it was tried: the cache, or what there is of its path */
    int sandbox_code; /* of one made and used; 0: well */
    double sandbox_ms;
    char sandbox_text[512];
    struct doctor_limit limits[DOCTOR_LIMITS];
    size_t limit_count;
    enum doctor_status status;
};

/* What `sluice-worker --doctor` does; prints to `out` as text or JSON. */
enum doctor_status doctor_run(const char *cache, const char *tier, const struct cgroups *cgroups, bool is_json,
                              FILE *out);

#endif
