/*
 * init_inside.h - the first process of a sandbox, shared by init.h (its life), init_ends.h (ends of
 * others), init_services.h (what the worker asks for) and init_answer.h (what it is told).
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_INIT_INSIDE_H
#define SLUICE_WORKERS_SANDBOX_INIT_INIT_INSIDE_H

#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/init/pending_execs.h"
#include "workers/sandbox/init/backend.h"
#include "workers/sandbox/proto/wire.h"

enum { INIT_POLLED_MAX = 2 + EXECS_MAX + NOTIFIERS_MAX };

struct init {
    int control, signals; /* signalfd */
    pid_t pid;            /* ours, as those inside know it */
    struct container_plan plan;
    const struct sandbox_backend *backend;
    struct container container;
    struct pollfd polled[INIT_POLLED_MAX];      /* of which few are used, as of what follows */
    struct pending_execs execs;                 /* whose ends the worker hears of */
    _Alignas(4096) struct wire_message message; /* its beginning is all that is used of most */
};

#endif
