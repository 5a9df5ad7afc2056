/*
 * group.submit: what may come in, and why not.
 */
#include "broker/core/clients/submit.h"
#include "broker/core/clients/admission.h"
#include "broker/core/clients/early_cancel.h"
#include "broker/core/engines/policies.h"
#include "broker/core/needs/missing.h"
#include "broker/core/needs/needs.h"
#include "broker/core/queue/expiry.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/owners.h"
#include "broker/core/streams/streams.h"

#include <assert.h>

/* Of a group of one, where a sampler keeps those whose rewards differ; empty of others. */
static const char *single_warning(const struct call *call, const struct stream *stream)
{
    const bool is_single = ((const struct msg_group_submit *)call->in)->samples == 1;
    return is_single && stream->sampler && !stream->sampler->row.rule.keeps_uniform
               ? "its stream's sampler keeps groups whose rewards differ, and those of one rollout cannot: submit it "
                 "with "
                 "2 samples or more"
               : "";
}

/* Of what is nearly full, of what can never be in a batch, and of what its rollouts will wait for. */
static struct slice warning_of(struct core *core, const struct call *call, const struct stream *stream)
{
    const struct msg_group_submit *in = call->in;
    const struct slice nearly = admission_warning(core, stream->owner);
    const char *single = single_warning(call, stream);
    const struct slice full = *single
                                  ? effect_print(core, "%.*s%s%s", SLICE_ARG(nearly), nearly.len ? "; " : "", single)
                                  : nearly;
    if (!call->task->needs[STAGE_RUN].len && !call->task->needs[STAGE_EVAL].len && !call->task->judge.len)
        return full;
    struct missing missing;
    const struct group *group = group_find(core, in->group);
    if (!group || !group->work || !missing_of_group(core, group->work, &missing).len)
        return full;
    return effect_print(core, "%.*s%sits rollouts will wait for %s", SLICE_ARG(full), full.len ? "; " : "",
                        missing.text);
}

/* `stream` NULL: nobody knows it any more. */
static void send_accepted(struct core *core, const struct call *call, const struct stream *stream, struct slice group,
                          uint64_t samples, bool known)
{
    struct slice warning = stream ? warning_of(core, call, stream) : slice_of(NULL, 0);
    struct msg_group_accepted accepted = {.tag = call->tag,
                                          .group = group,
                                          .samples = samples,
                                          .known = known,
                                          .warning = warning,
                                          .has_warning = warning.len > 0};
    send_client(core, call->client, MSG_group_accepted, &accepted);
}

static bool is_same_group(const struct group *group, const struct msg_group_submit *in, uint64_t task_hash)
{
    return group->task_hash == task_hash && group->samples == in->samples &&
           slice_equal(stream_name(group->stream), in->stream);
}

static void refuse_other_content(struct core *core, const struct call *call)
{
    const struct msg_group_submit *in = call->in;
    send_refused(core, call, REFUSAL_GROUP_EXISTS, "group", 0,
                 "the group %.*s was submitted with another task, stream or number of samples; "
                 "choose another id",
                 SLICE_ARG(in->group));
}

/* The group was here, and nothing is left of it but that: its submit is answered as the first one was. */
static void answer_past(struct core *core, const struct call *call, struct stream *stream)
{
    const struct msg_group_submit *in = call->in;
    if (call->task->past_hash != call->task_hash) {
        refuse_other_content(core, call);
        return;
    }
    if (stream)
        stream_renew(core, stream);
    send_accepted(core, call, stream, in->group, in->samples, true);
}

/* Whether what it needs of engines is there, or may come; says why not. */
static bool admit_engines(struct core *core, const struct call *call)
{
    if (call->task->needs_engine && core->engines_registered == 0) {
        send_refused(core, call, REFUSAL_NO_ENGINE, "task", 0,
                     "the task needs an engine and none is registered: sluice engine add URL");
        return false;
    }
    struct policy *policy = call->task->needs_engine ? policy_find(core, call->task->policy) : NULL;
    if (call->task->needs_engine && (!policy || !policy->engines)) {
        send_refused(core, call, REFUSAL_NO_ENGINE, "task.policy", 0,
                     "no engine of the policy '%.*s' is registered: sluice engine add URL --policy NAME",
                     SLICE_ARG(call->task->policy.len ? call->task->policy : slice_from_str("default")));
        return false;
    }
    if (call->task->judge.len && !policy_find(core, call->task->judge) && !policies_have_room(core)) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "task", RETRY_AFTER_MS,
                     "no more policies fit, and no engine is of '%.*s'; use one that `sluice status` shows",
                     SLICE_ARG(call->task->judge));
        return false;
    }
    return true;
}

/* Whether the stream's sampler, if it has one, has room for one more; says why not. */
static bool admit_sampler(struct core *core, const struct call *call, const struct stream *stream)
{
    const struct sampler *sampler = stream ? stream->sampler : NULL;
    if (!sampler || (!sampler->row.is_closing && sampler->counts[SAMPLED_HELD] < SAMPLER_POOL_MAX))
        return true;
    send_refused(core, call, REFUSAL_QUEUE_FULL, "stream", RETRY_AFTER_MS,
                 sampler->row.is_closing ? "the sampler of %s is being closed; try again later"
                                         : "the sampler of %s holds as many groups as it may; submit more when it has "
                                           "released some",
                 stream->name);
    return false;
}

/* Whether a new group may come in; says why not. */
static bool admit(struct core *core, const struct call *call, const struct stream *stream)
{
    const struct client *owner = stream ? stream->owner : client_find(core, call->caller->name);
    const struct msg_group_submit *in = call->in;
    if (!name_is_valid(in->group) || !name_is_valid(in->stream)) {
        const char *field = name_is_valid(in->group) ? "stream" : "group";
        send_refused(core, call, REFUSAL_BAD_NAME, field, 0,
                     "group.submit: a %s's name holds no '/', blank or control character", field);
        return false;
    }
    if (!admission_check(core, call, owner, in->samples) || !admit_sampler(core, call, stream))
        return false;
    if (!stream && !owners_have_room(core, call->caller->name)) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "stream", 0,
                     "no more streams fit, of yours or of all; use one of those you have");
        return false;
    }
    if (!needs_have_room(core, call->task)) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "task", RETRY_AFTER_MS,
                     "live groups need %d different sets of agents, tools and evaluators of handlers, and no more fit; "
                     "use the same for more of your tasks, or wait for groups to end",
                     NEEDS_MAX);
        return false;
    }
    return admit_engines(core, call);
}

/* NULL where there is none, or no memory. */
static const struct core_task *keep_summary(struct core *core, const struct core_task *task)
{
    if (!task)
        return NULL;
    struct core_task kept = *task;
    kept.id = effect_copy(core, task->id);
    kept.image = effect_copy(core, task->image);
    kept.policy = effect_copy(core, task->policy);
    kept.judge = effect_copy(core, task->judge);
    for (int stage = 0; stage < STAGE_COUNT; stage++)
        kept.needs[stage] = effect_copy(core, task->needs[stage]);
    return effect_row(core, &kept, sizeof(kept));
}

static void persist_group(struct core *core, const struct call *call, const struct group *group)
{
    struct effect *persist = effect_push(core, PERSIST_GROUP);
    persist->group = effect_copy(core, group_id(group));
    persist->stream = effect_copy(core, stream_name(group->stream));
    persist->samples = group->samples;
    persist->task_hash = group->task_hash;
    persist->owner = effect_copy(core, client_name(group->stream->owner));
    persist->priority = group->work->priority;
    persist->task = ((const struct msg_group_submit *)call->in)->task;
    persist->summary = keep_summary(core, call->task);
    persist->accepted_ms = (uint64_t)core_clock_ms(core);
    persist->lease_ms = group->work->lease_ms;
}

/* NULL when out of memory. */
static struct group *make_group(struct core *core, const struct call *call)
{
    const struct msg_group_submit *in = call->in;
    struct stream *stream = stream_intern(core, in->stream, call->caller->name);
    if (stream)
        stream->is_used = true;
    struct group *group =
        stream ? group_create(core, in->group, stream, (uint32_t)in->samples, call->task_hash, call->task) : NULL;
    if (!group)
        return NULL;
    group->work->lease_ms = in->has_lease_ms ? (uint32_t)in->lease_ms : 0;
    stream_renew(core, stream);
    expiry_arm(core, group, call->task->total_ms, 0);
    group_count(core, group, group->samples);
    core->accepted += group->samples;
    stream->owner->accepted += group->samples;
    core->counters.groups++;
    if (in->has_priority)
        group->work->priority = (uint8_t)in->priority;
    return group;
}

/* It is here: its submit is answered as the first one was, if it says the same. */
static void answer_known(struct core *core, const struct call *call, struct group *group)
{
    if (!is_same_group(group, call->in, call->task_hash)) {
        refuse_other_content(core, call);
        return;
    }
    stream_renew(core, group->stream);
    send_accepted(core, call, group->stream, group_id(group), group->samples, true);
}

static void accept(struct core *core, const struct call *call)
{
    struct group *group = make_group(core, call);
    if (!group)
        return;
    persist_group(core, call, group);
    struct sampler *sampler = group->stream->sampler;
    if (!sampler)
        job_queue(core, &group->work->init, false);
    else if (sampled_add(core, sampler, group))
        job_hold(core, &group->work->init);
    send_accepted(core, call, group->stream, group_id(group), group->samples, false);
    early_cancels_apply(core, call, group);
}

void handle_group_submit(struct core *core, const struct call *call)
{
    const struct msg_group_submit *in = call->in;
    assert(call->task);
    struct stream *stream = stream_find(core, in->stream);
    if (stream && !owners_allow(core, call, stream, "stream"))
        return;
    struct group *known = group_find(core, in->group);
    if (known)
        answer_known(core, call, known);
    else if (call->task->is_past)
        answer_past(core, call, stream);
    else if (admit(core, call, stream))
        accept(core, call);
}
