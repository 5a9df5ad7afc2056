/*
 * worker.drain. Its workers are given nothing from now on, whatever their beats say,
 * until they are gone; one that did not hear is told again after its next beat.
 */
#include "broker/core/workers/drain.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

void send_drain(struct core *core, const struct worker *worker)
{
    struct msg_lane_drain message = {.grace_s = worker->drain.grace_s, .has_grace_s = worker->drain.has_grace};
    send_worker(core, worker, MSG_lane_drain, &message);
}

static void drain(struct core *core, struct worker *worker, const struct msg_worker_drain *in)
{
    worker->drain = (struct drain){true, in->has_grace_s, (uint32_t)in->grace_s};
    worker->draining = true;
    send_drain(core, worker);
    worker_refresh(core, worker);
}

static uint64_t drain_host(struct core *core, const struct msg_worker_drain *in)
{
    uint64_t count = 0;
    struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (!slice_is(in->host, worker->host))
            continue;
        drain(core, worker, in);
        count++;
    }
    return count;
}

static uint64_t drain_one(struct core *core, const struct msg_worker_drain *in)
{
    struct worker *worker = worker_find(core, in->worker);
    if (worker)
        drain(core, worker, in);
    return worker != NULL;
}

void handle_worker_drain(struct core *core, const struct call *call)
{
    const struct msg_worker_drain *in = call->in;
    if (in->has_worker + in->has_host != 1) {
        send_refused(core, call, REFUSAL_AMBIGUOUS, NULL, 0, "worker.drain: give exactly one of worker and host");
        return;
    }
    uint64_t count = in->has_worker ? drain_one(core, in) : drain_host(core, in);
    if (count)
        send_done(core, call, count);
    else if (in->has_worker)
        send_refused(core, call, REFUSAL_UNKNOWN_WORKER, "worker", 0, "no worker %.*s is connected: see sluice status",
                     SLICE_ARG(in->worker));
    else
        send_refused(core, call, REFUSAL_UNKNOWN_WORKER, "host", 0,
                     "no worker of a host %.*s is connected: see sluice status", SLICE_ARG(in->host));
}
