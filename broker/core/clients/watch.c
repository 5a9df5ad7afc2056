#include "broker/core/clients/watch.h"
#include "broker/core/clients/get.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/owners.h"
#include "broker/core/watches/watches.h"

/* Looking renews no lease: a page that is left open is no trainer that is alive. */
void handle_rollout_watch(struct core *core, const struct call *call)
{
    const struct msg_rollout_watch *in = call->in;
    struct group *group;
    uint32_t sample;
    if (!rollout_find(core, in->rollout, &group, &sample)) {
        if (call->task && call->task->is_past)
            send_done(core, call, 0);
        else
            send_refused(core, call, REFUSAL_UNKNOWN_ROLLOUT, "rollout", 0, "there is no rollout %.*s",
                         SLICE_ARG(in->rollout));
        return;
    }
    if (!owners_allow(core, call, group->stream, "rollout"))
        return;
    struct group_work *work = group->work;
    if (!work || rollout_has_ended(work, sample)) {
        send_done(core, call, 0);
        return;
    }
    const char *full = watch_renew(core, call, in->rollout);
    if (full) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "rollout", RETRY_AFTER_MS, "%s", full);
        return;
    }
    watch_tell(core, rollout_job(work, sample), in->has_anew && in->anew);
    send_rollout_state(core, call, in->rollout, group, sample);
}
