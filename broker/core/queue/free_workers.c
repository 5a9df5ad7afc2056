/* The workers of a stage that may be given jobs, the freest first; and what slots a stage has. */
#include "broker/core/queue/free_workers.h"
#include "broker/core/state/state.h"

bool worker_may_take(const struct core *core, const struct worker *worker)
{
    return !worker_is_out(worker) && !worker->isolated && core->reserved[worker->stage] != worker &&
           worker->jobs.count < worker->slots;
}

void worker_refresh(struct core *core, struct worker *worker)
{
    struct heap *heap = &core->free[worker->stage];
    int64_t free_slots = (int64_t)worker->slots - (int64_t)worker->jobs.count;
    core->slots[worker->stage] -= worker->counted;
    worker->counted = worker_is_out(worker) ? 0 : worker->slots;
    core->slots[worker->stage] += worker->counted;
    if (!worker_may_take(core, worker))
        heap_remove(heap, &worker->free);
    else if (!heap_put(heap, &worker->free, -free_slots))
        core->failed = true;
}
