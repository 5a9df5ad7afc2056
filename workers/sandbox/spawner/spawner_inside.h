/*
 * spawner_inside.h - the spawner's own side, shared by spawner.c (its life, and its eye on those that live)
 * and spawner_containers.c (new ones). Nobody else includes it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_INSIDE_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_INSIDE_H

#include "common/base/fail.h"
#include "workers/sandbox/spawner/cpus.h"
#include "workers/sandbox/spawner/disks.h"
#include "workers/sandbox/spawner/zygote.h"
#include "workers/sandbox/init/init.h"
#include "workers/sandbox/spawner/prewarmed.h"
#include "workers/sandbox/spawner/spawner.h"
#include "workers/sandbox/spawner/sandbox_entry.h"
#include "workers/sandbox/init/backend.h"
#include "workers/sandbox/proto/wire.h"

/* In pages that no child gets: each would keep a copy of those that are written after it was made. */
struct spawner_state {
    const struct sandbox_backend *backend;
    int worker;    /* wire to the worker */
    int births[2]; /* new pid 1s write to [1] */
    int children;  /* signalfd of SIGCHLD */
    const struct spawner_setup *setup;
    struct fail base; /* why there is none, and so no containers */
    int host_proc;    /* /proc, where there are no pid namespaces; -1 */
    struct cpus cpus;
    struct zygotes zygotes;
    struct prewarmed prewarmed; /* on no zygote */
    uint32_t group;             /* the last one's number */
    size_t count;
    bool is_unswept; /* there may be groups that nobody is in */
    int64_t watch_at_ms;
    struct wire_message asked;
    struct entry_usage sight;
    struct sandbox_entry entries[USAGE_COUNT];
};

/* Beside it, for children: the message that asks for a container, where they read its strings; and this. */
extern struct wire_message spawner_shown;
extern struct disks spawner_disks;
extern struct init_setup spawner_init;

#endif
