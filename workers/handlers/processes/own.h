/*
 * own.h - a handler that comes with its task (`handlers` of the task): started in the sandbox of a stage, one process
 * for one job, by bash with the protocol's socket as descriptor 3. It offers what the task names it for. The sandbox's
 * end is its end. What goes wrong with it is the task's fault: -ENOTRECOVERABLE (blame.def).
 */
#ifndef SLUICE_WORKERS_HANDLERS_PROCESSES_OWN_H
#define SLUICE_WORKERS_HANDLERS_PROCESSES_OWN_H

#include "workers/handlers/wire/peer.h"
#include "workers/handlers/processes/said.h"
#include "workers/sandbox/sandbox.h"

struct own_handler {
    struct handler_peer peer;
    struct said said;
    const struct task_handler *handler;
    struct fiber *fiber; /* that awaits its hello */
    char why[256];       /* why it is broken; "": it is not */
};

/*
 * Starts it and awaits its hello. 0, -ENOTRECOVERABLE, or what the sandbox refused; own_handler_close it in any case
 * (all zero before: nothing happens). `stage` is a stage's word. In the fiber that uses it, which it must not outlive.
 */
int own_handler_open(struct own_handler *own, struct sandbox *sandbox, const struct task_handler *handler,
                     enum handler_role role, const char *stage, struct fail *fail);
void own_handler_close(struct own_handler *own);

#endif
