/* rollout.get: where a rollout is, or its trajectory. */
#include "broker/core/clients/get.h"
#include "broker/core/streams/owners.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/status/rollout_why.h"
#include "broker/core/streams/retention.h"

void send_rollout_state(struct core *core, const struct call *call, struct slice rollout, const struct group *group,
                        uint32_t sample)
{
    static const char *const states[] = {
#define X(name, wire) wire,
        PLACES(X)
#undef X
    };
    const struct job *job = rollout_job(group->work, sample);
    const struct job_progress *progress = job_progress_find(core, job);
    struct why why;
    struct msg_rollout_state state = {
        .tag = call->tag,
        .rollout = rollout,
        .stage = slice_from_str(stage_wire(job->stage)),
        .state = slice_from_str(states[job->place]),
        .attempt = job->course->attempt,
        .has_worker = job->course->worker != NULL,
        .worker = job->course->worker ? worker_id(job->course->worker) : slice_of(NULL, 0),
        .has_turn = progress && progress->turn,
        .turn = progress ? progress->turn : 0,
        .tool = slice_from_str(progress ? progress->tool : ""),
        .why = rollout_why(core, job, &why),
    };
    state.has_tool = state.tool.len > 0;
    state.has_why = state.why.len > 0;
    send_client(core, call->client, MSG_rollout_state, &state);
}

/* Nobody knows it; or its group was here, and nothing is left of it but that. */
static void refuse_unknown(struct core *core, const struct call *call)
{
    const struct slice rollout = ((const struct msg_rollout_get *)call->in)->rollout;
    if (call->task && call->task->is_past)
        send_refused(core, call, REFUSAL_FORGOTTEN, "rollout", 0,
                     "the trajectory of %.*s was acknowledged or forgotten long ago", SLICE_ARG(rollout));
    else
        send_refused(core, call, REFUSAL_UNKNOWN_ROLLOUT, "rollout", 0, "there is no rollout %.*s", SLICE_ARG(rollout));
}

void handle_rollout_get(struct core *core, const struct call *call)
{
    const struct msg_rollout_get *in = call->in;
    struct group *group;
    uint32_t sample;
    if (!rollout_find(core, in->rollout, &group, &sample)) {
        refuse_unknown(core, call);
        return;
    }
    if (!owners_allow(core, call, group->stream, "rollout"))
        return;
    stream_heard(core, call, group->stream);
    uint64_t seq = rollout_seq(group, sample);
    if (group->work && !rollout_has_ended(group->work, sample)) {
        send_rollout_state(core, call, in->rollout, group, sample);
        return;
    }
    if (seq < group->stream->first) {
        struct slice words = retention_words(core, group->stream, seq);
        send_refused(core, call, REFUSAL_FORGOTTEN, "rollout", 0,
                     "the trajectory of %.*s was %.*s and is no longer kept", SLICE_ARG(in->rollout), SLICE_ARG(words));
        return;
    }
    struct slice client = effect_copy(core, call->client);
    struct effect *send = effect_push(core, SEND_TRAJECTORY);
    send->client = client;
    send->tag = call->tag;
    send->stream = effect_copy(core, stream_name(group->stream));
    send->seq = seq;
}
