/* What is counted of a stage: its workers, and its jobs that wait. */
#include "broker/core/status/stages.h"
#include "broker/core/state/state.h"

size_t status_waiting(const struct core *core, enum stage stage)
{
    return core->queues[PLACE_QUEUED][stage].count + core->queues[PLACE_ISOLATED][stage].count +
           core->queues[PLACE_BLOCKED][stage].count + core->queues[PLACE_ORPHAN][stage].count +
           core->queues[PLACE_UNOFFERED][stage].count + (stage == STAGE_INIT ? core->images_waiting : 0);
}

struct stage_workers stage_workers_of(const struct core *core, enum stage stage)
{
    struct stage_workers stage_workers = {0};
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (worker->stage != stage)
            continue;
        stage_workers.workers++;
        stage_workers.draining += worker->draining;
        stage_workers.hung += worker->hung;
        stage_workers.unreached += worker->unreached != NULL;
        if (worker_is_out(worker))
            continue;
        stage_workers.slots += worker->slots;
        stage_workers.free += worker->slots - worker->jobs.count;
    }
    return stage_workers;
}

enum worker_state worker_state_of(const struct worker *worker)
{
    return worker->hung        ? WORKER_HUNG
           : worker->unreached ? WORKER_UNREACHED
           : worker->draining  ? WORKER_DRAINING
                               : WORKER_READY;
}

const char *worker_state_word(enum worker_state state)
{
    static const char *const words[] = {
#define X(name, word) word,
        WORKER_STATES(X)
#undef X
    };
    return words[state];
}
