/*
 * init_inside.h - the first process of a sandbox, shared by init.c (its life), init_ends.c (ends of
 * others) and init_services.c (what the worker asks for). Nobody else includes it.
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

/* ---- to the worker -------------------------------------------------- */

/* Ends us where nobody is there any more. */
void init_tell(struct init *init, const struct wire_head *head, const char *text, const int *fds, size_t fd_count);
void init_answer(struct init *init, int64_t result, const int *fds, size_t fd_count);
void init_refuse(struct init *init, const struct fail *fail);

/* ---- beginnings and ends ----------------------------------------------------------- */

/* Tells what became of those under way. */
void init_settle(struct init *init);
/* Buries the dead, ours and the orphans. */
void init_reap(struct init *init);
/* All but us and `spared` (0: none). False when new ones appear as fast as they are killed (the spared
 * one makes them). */
bool init_kill_others(struct init *init, pid_t spared);
bool init_kill_but(struct init *init, const struct proc_spared *spared);
/* Nobody is left when we are gone. */
_Noreturn void init_end(struct init *init);

/* ---- services --------------------------------------------------------- */

/* What came in init->message. */
void init_serve(struct init *init);

#endif
