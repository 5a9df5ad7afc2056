/*
 * probe.h - what this machine allows, found by trying it: each check runs for real in a process
 * of its own, in the namespaces it needs and with a deadline, and leaves nothing behind. Call it
 * while the program is small and has one thread. Blocking, some 20 ms in all.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROBE_PROBE_H
#define SLUICE_WORKERS_SANDBOX_PROBE_PROBE_H

#include <sys/types.h>

#include "common/base/fail.h"
#include "workers/sandbox/proto/kernel_info.h"
#include "workers/sandbox/proto/tier.h"

struct cgroups;

/* A check that starts another program has longer: that may come from a network's disk. */
enum { PROBE_LIMIT_MS = 2000, PROBE_PROGRAM_LIMIT_MS = 12000, PROBE_TEXT_MAX = 256, PROBE_CURE_MAX = 640 };

/* Where the checks may write: an empty directory of the cache. */
struct probe_place {
    int directory;
    char path[512];
    uid_t uid; /* ours, as seen from here */
    gid_t gid;
    const struct cgroups *cgroups; /* or NULL */
};

struct probe_result {
    bool is_ok, is_tried;
    int code;                    /* negative errno of what failed */
    char text[PROBE_TEXT_MAX];   /* what was found, or why not */
    char remedy[PROBE_CURE_MAX]; /* for the administrator; "" where there is nothing to do */
};

struct probe {
    struct kernel_info kernel;
    struct probe_result results[CHECK_COUNT];
};

/* Tries everything, with files in a fresh directory below `cache`, which must be there, and a group of `cgroups`,
 * where that is not NULL. */
int probe_run(const char *cache, const struct cgroups *cgroups, struct probe *ret, struct fail *fail);
/* The checks that `tier` needs and that do not hold, as bits; 0: it can be used. */
uint32_t probe_missing(const struct probe *probe, enum tier tier);
/* The best that can be used, or TIER_NONE. */
enum tier probe_choose(const struct probe *probe);
/* The first thing that `tier` wants here, in a sentence; -ENOTSUP. */
int probe_refuse(const struct probe *probe, enum tier tier, struct fail *fail);

const char *probe_word(enum probe_check check);  /* "overlay_tmpfs" */
const char *probe_title(enum probe_check check); /* "overlay on tmpfs" */
const char *probe_use(enum probe_check check);   /* what it is for */

/* ---- for probe.c and its parts ------------------------------------ */

/* In the process of its own: 0 with a note in fail->text, or negative errno and why. */
#define CHECK(name, title, namespaces, after, limit_ms, use)                                                           \
    int probe_try_##name(const struct probe_place *place, struct fail *fail);
#include "workers/sandbox/proto/checks.def"
#undef CHECK

/* Runs one; the deadline is `limit_ms`. */
void probe_try(int (*check)(const struct probe_place *place, struct fail *fail), uint64_t namespaces,
               const struct probe_place *place, int64_t limit_ms, struct probe_result *ret);

/* Where it is in PATH, as a note; -ENOENT. */
int probe_find_program(const char *name, struct fail *fail);

#endif
