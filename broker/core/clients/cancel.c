/*
 * rollout.cancel. A rollout or a group is done at once; a stream may hold a million
 * rollouts, so its cancel is a sweep in slices, and `done` is said after the last. The
 * first slice is done at once, unless what came before it in the cycle is much already.
 */
#include "broker/core/clients/cancel.h"
#include "broker/core/clients/early_cancel.h"
#include "broker/core/streams/owners.h"
#include "broker/core/queue/groups.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

struct sweep {
    struct list link;
    struct stream *stream;
    uint64_t serial; /* groups submitted after the request are not meant */
    uint64_t count, tag;
    size_t client_len;
    uint8_t client[];
};

static const struct ending cancelled = {.outcome = OUTCOME_CANCELLED};

static uint64_t cancel_group(struct core *core, struct group *group)
{
    uint64_t live = group->work ? group->work->live : 0;
    group_end(core, group, &cancelled);
    return live;
}

/* ---- a stream's sweep -------------------------------------------------------------- */

/* The oldest group the sweep still has to cancel, or NULL. */
static struct group *next_group(const struct sweep *sweep)
{
    if (list_is_empty(&sweep->stream->live))
        return NULL;
    struct group *group = container_of(sweep->stream->live.next, struct group, live);
    return group->work->serial <= sweep->serial ? group : NULL;
}

static void sweep_step(struct core *core, struct sweep *sweep)
{
    struct group *group;
    uint64_t before = sweep->count;
    while ((group = next_group(sweep)) && sweep->count - before < SWEEP_SLICE)
        sweep->count += cancel_group(core, group);
    if (group)
        return;
    struct msg_done done = {.tag = sweep->tag, .count = sweep->count};
    send_client(core, slice_of(sweep->client, sweep->client_len), MSG_done, &done);
    list_remove(&sweep->link);
    core->sweep_count--;
    free(sweep);
}

void sweeps_tick(struct core *core)
{
    if (!list_is_empty(&core->sweeps))
        sweep_step(core, container_of(core->sweeps.next, struct sweep, link));
}

void sweeps_finish(struct core *core)
{
    struct sweep *sweep;
    LIST_EACH(sweep, &core->sweeps, link)
        free(sweep);
}

/* ---- the three ways to say what is meant ------------------------------------------- */

/* "<group>/<k>" of a group that nobody knows: it may still be submitted. */
static bool may_come(const struct core *core, struct slice rollout)
{
    const uint8_t *slash = memchr(rollout.data, '/', rollout.len);
    struct slice group = slice_of(rollout.data, slash ? (size_t)(slash - rollout.data) : 0);
    size_t digits = slash ? rollout.len - group.len - 1 : 0;
    if (digits < 1 || digits > 4 || (digits > 1 && slash[1] == '0'))
        return false;
    for (size_t i = 1; i <= digits; i++)
        if (slash[i] < '0' || slash[i] > '9')
            return false;
    return name_is_valid(group) && !group_find(core, group);
}

/* Nothing of that name is there to cancel: what is still to come will be. */
static void cancel_ahead(struct core *core, const struct call *call, struct slice name)
{
    early_cancel_put(core, call, name);
    send_done(core, call, 0);
}

static void cancel_one(struct core *core, const struct call *call)
{
    const struct msg_rollout_cancel *in = call->in;
    struct group *group;
    uint32_t sample;
    if (!rollout_find(core, in->rollout, &group, &sample)) {
        if (may_come(core, in->rollout))
            cancel_ahead(core, call, in->rollout);
        else
            send_refused(core, call, REFUSAL_UNKNOWN_ROLLOUT, "rollout", 0, "there is no rollout %.*s",
                         SLICE_ARG(in->rollout));
        return;
    }
    if (!owners_allow(core, call, group->stream, "rollout"))
        return;
    bool is_live = group->work && !rollout_has_ended(group->work, sample);
    stream_heard(core, call, group->stream);
    if (is_live && group_unfold(core, group))
        rollout_end(core, &group->work->rollouts[sample], &cancelled);
    send_done(core, call, is_live);
}

static void cancel_many(struct core *core, const struct call *call)
{
    const struct msg_rollout_cancel *in = call->in;
    struct group *group = group_find(core, in->group);
    if (group) {
        if (!owners_allow(core, call, group->stream, "group"))
            return;
        stream_heard(core, call, group->stream);
        send_done(core, call, cancel_group(core, group));
    } else if (name_is_valid(in->group)) {
        cancel_ahead(core, call, in->group);
    } else {
        send_refused(core, call, REFUSAL_UNKNOWN_GROUP, "group", 0, "there is no group %.*s", SLICE_ARG(in->group));
    }
}

static void cancel_stream(struct core *core, const struct call *call)
{
    const struct msg_rollout_cancel *in = call->in;
    struct stream *stream = owners_find(core, call, in->stream);
    if (!stream)
        return;
    stream_heard(core, call, stream);
    if (core->sweep_count >= SWEEPS_MAX) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, NULL, RETRY_AFTER_MS,
                     "%zu streams are being cancelled; try again later", core->sweep_count);
        return;
    }
    struct sweep *sweep = core_alloc(core, 1, sizeof(*sweep) + call->client.len);
    if (!sweep)
        return;
    sweep->stream = stream;
    sweep->serial = core->serial;
    sweep->tag = call->tag;
    sweep->client_len = call->client.len;
    if (call->client.len)
        memcpy(sweep->client, call->client.data, call->client.len);
    list_push_back(&core->sweeps, &sweep->link);
    core->sweep_count++;
    if (core->effects.count < CYCLE_EFFECTS)
        sweep_step(core, sweep);
}

void handle_rollout_cancel(struct core *core, const struct call *call)
{
    const struct msg_rollout_cancel *in = call->in;
    if (in->has_rollout + in->has_group + in->has_stream != 1)
        send_refused(core, call, REFUSAL_AMBIGUOUS, NULL, 0,
                     "rollout.cancel: give exactly one of rollout, group and stream");
    else if (in->has_rollout)
        cancel_one(core, call);
    else if (in->has_group)
        cancel_many(core, call);
    else
        cancel_stream(core, call);
}
