/*
 * backend.h - what differs between containers with namespaces and plain ones (landlock_container.h), for those who make
 * them: the spawner, the first process of a sandbox, and the worker that ends it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_BACKEND_H
#define SLUICE_WORKERS_SANDBOX_INIT_BACKEND_H

#include "workers/sandbox/container/container.h"
#include "workers/sandbox/init/services/pack.h"

struct sandbox_backend {
    int end_signal; /* to the first process: it ends, and nothing that it started is left */
    /* While it waits for its plan; NULL: nothing. */
    int (*prepare)(const struct container_plan *plan, struct container *ret, struct fail *fail);
    int (*build)(const struct container_plan *plan, struct container *ret, struct fail *fail);
    int (*confine)(const struct container_plan *plan, struct fail *fail);
    /* Of each process that is started, what the first process has not: in the process, and what is
     * then told where it was started. NULL: nothing. */
    int (*guard)(int tell, struct fail *fail);
    int (*meet)(struct container *container, int told, struct fail *fail);
    enum pack_form form; /* of what was written */
    bool has_terminals;
};

const struct sandbox_backend *sandbox_backend(enum tier tier);

#endif
