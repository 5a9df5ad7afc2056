/* The workers of a stage that may be given jobs, the freest first; and what slots a stage has. */
#include "broker/core/queue/free_workers.h"
#include "broker/core/needs/offers.h"
#include "broker/core/state/state.h"

bool worker_may_take(const struct core *core, const struct worker *worker)
{
    return !worker_is_out(worker) && !worker->isolated && core->reserved[worker->stage] != worker &&
           worker->jobs.count < worker->slots;
}

int64_t worker_rank(const struct worker *worker)
{
    enum { OFFERS_SOMETHING = 1 << 20 }; /* beyond all slots */
    return (int64_t)worker->jobs.count - (int64_t)worker->slots + (worker->offers ? OFFERS_SOMETHING : 0);
}

void worker_refresh(struct core *core, struct worker *worker)
{
    struct heap *heap = &core->free[worker->stage];
    const bool may_take = worker_may_take(core, worker);
    core->slots[worker->stage] -= worker->counted;
    worker->counted = worker_is_out(worker) ? 0 : worker->slots;
    core->slots[worker->stage] += worker->counted;
    offers_refresh(core, worker, may_take);
    if (!may_take)
        heap_remove(heap, &worker->free);
    else if (!heap_put(heap, &worker->free, worker_rank(worker)))
        core->failed = true;
}
