#include "broker/core/queue/groups.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/images.h"
#include "broker/core/engines/policies.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/needs/needs.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/sessions/sessions.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/quotas.h"
#include "broker/core/streams/retention.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- life -------------------------------------------------------------------------- */

static void job_init(struct job *job, struct group *group, enum stage stage, uint32_t sample)
{
    list_init(&job->link);
    job->course = &job_course_empty;
    job->group = group;
    job->stage = (uint8_t)stage;
    job->sample = (uint16_t)sample;
}

struct slice group_task_id(const struct group *group) { return slice_from_str(group->work->task_id); }

static void create_judging(struct core *core, struct group_work *work, size_t samples, struct slice name)
{
    struct policy *policy = policy_intern(core, name);
    work->judging = core_alloc(core, 1, sizeof(*work->judging) + samples * sizeof(struct engine *));
    if (policy && work->judging)
        policy_add_judged(policy, work);
}

static struct group_work *create_work(struct core *core, struct group *group, const struct core_task *task)
{
    struct group_work *work = core_alloc(core, 1, sizeof(*work) + task->id.len + 1);
    if (!work)
        return NULL;
    work->serial = ++core->serial;
    work->priority = PRIORITY_USUAL;
    work->task_bytes = task->bytes < UINT32_MAX ? (uint32_t)task->bytes : UINT32_MAX;
    if (task->id.len)
        memcpy(work->task_id, task->id.data, task->id.len);
    work->needs_engine = task->needs_engine;
    work->reads_record = task->reads_record;
    struct policy *policy = task->needs_engine ? policy_intern(core, task->policy) : NULL;
    if (policy)
        policy_add_group(policy, work);
    if (task->judge.len)
        create_judging(core, work, group->samples, task->judge);
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++)
        work->limit_ms[stage] = core_ms((uint64_t)task->limit_ms[stage]);
    image_join(core, work, task->image);
    needs_join(core, work, task);
    job_init(&work->init, group, STAGE_INIT, 0);
    return work;
}

/* All are live; or, while the group is restored, the first ones, as many as were told of. */
bool group_unfold(struct core *core, struct group *group)
{
    struct group_work *work = group->work;
    if (work->rollouts)
        return true;
    work->rollouts = core_alloc(core, group->samples, sizeof(*work->rollouts));
    for (uint32_t k = 0; work->rollouts && k < group->samples; k++) {
        job_init(&work->rollouts[k].job, group, STAGE_RUN, k);
        work->rollouts[k].ended = k >= work->live;
    }
    return work->rollouts != NULL;
}

struct group *group_make(struct core *core, struct slice id, struct stream *stream, uint32_t samples,
                         uint64_t task_hash, const struct core_task *task)
{
    struct group *group = core_alloc(core, 1, offsetof(struct group, id) + id.len + 1);
    if (!group)
        return NULL;
    memcpy(group->id, id.data, id.len);
    list_init(&group->live);
    group->id_len = (uint16_t)id.len;
    group->stream = stream;
    group->samples = (uint16_t)samples;
    group->task_hash = task_hash;
    group->work = create_work(core, group, task);
    if (!group->work) {
        group_destroy(group);
        return NULL;
    }
    list_push_back(&stream->live, &group->live);
    quota_take(core, stream->owner, QUOTA_TASK_BYTES, group->work->task_bytes);
    return group;
}

struct group *group_create(struct core *core, struct slice id, struct stream *stream, uint32_t samples,
                           uint64_t task_hash, const struct core_task *task)
{
    struct group *group = group_make(core, id, stream, samples, task_hash, task);
    if (!group || table_put(&core->groups, group_id(group), group))
        return group;
    core->failed = true;
    group_destroy(group);
    return NULL;
}

void group_count(struct core *core, struct group *group, uint32_t rollouts)
{
    group->work->live = (uint16_t)(group->work->live + rollouts);
    core->live_by_init[group->work->init.place] += rollouts;
    counting_stream(core, group->stream);
    group->stream->pending += rollouts;
    quota_take(core, group->stream->owner, QUOTA_ROLLOUTS, rollouts);
    if (group->work->lease_ms)
        group->stream->under_lease += rollouts;
}

static void destroy_work(struct group *group)
{
    struct group_work *work = group->work;
    if (!work)
        return;
    group->work = NULL;
    for (uint32_t k = 0; work->rollouts && k < group->samples; k++) {
        free(work->rollouts[k].detail);
        job_clear(&work->rollouts[k].job);
    }
    job_clear(&work->init);
    list_remove(&group->live);
    free(work->rollouts);
    free(work->init_layer);
    free(work->judging);
    free(work);
}

void group_destroy(struct group *group)
{
    destroy_work(group);
    free(group->seqs);
    free(group);
}

void group_forget(struct core *core, struct group *group)
{
    free(group->seqs);
    group->seqs = NULL;
    list_push_back(&core->forgotten, &group->forgotten);
    core->forgotten_count++;
}

void groups_trim(struct core *core, size_t most)
{
    for (; most > 0 && core->forgotten_count > core->settings.forgotten_max; most--) {
        struct group *oldest = container_of(core->forgotten.next, struct group, forgotten);
        list_remove(&oldest->forgotten);
        core->forgotten_count--;
        table_take(&core->groups, group_id(oldest));
        group_destroy(oldest);
    }
}

void group_close(struct core *core, struct group *group)
{
    struct group_work *work = group->work;
    if (work->live > 0)
        return;
    sampled_note_close(core, group);
    job_withdraw(core, &work->init);
    quota_release(core, group->stream->owner, QUOTA_TASK_BYTES, work->task_bytes);
    heap_remove(&core->expiries, &work->expiry);
    image_part(core, work);
    needs_part(core, work);
    policy_take_group(core, work);
    uint64_t last = 0;
    group->seqs = core_alloc(core, group->samples, sizeof(*group->seqs));
    for (uint32_t k = 0; work->rollouts && k < group->samples; k++) {
        uint64_t seq = work->rollouts[k].seq;
        last = seq > last ? seq : last;
        if (group->seqs)
            group->seqs[k] = seq;
    }
    destroy_work(group);
    group->ended = (struct heap_node){0};
    if (last < group->stream->first)
        group_forget(core, group);
    else if (!heap_put(&group->stream->ended, &group->ended, (int64_t)last))
        core->failed = true;
}

/* ---- ends -------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *mark) { return strncmp(text, mark, strlen(mark)) == 0; }

/* The evaluator's words; before them the run's, where the agent used up its budget or they are marked to be kept. */
static struct slice end_detail(struct core *core, const struct rollout *rollout, const struct ending *ending)
{
    enum { DETAIL_MAX = 4096 };
    char both[DETAIL_MAX + 1];
    const char *run = rollout->detail ? rollout->detail : "";
    bool says_more = ending->outcome == OUTCOME_AGENT || begins_with(run, STALE_MARK) || begins_with(run, DIFFERS_MARK);
    bool is_joined = says_more && *run && ending->detail.len && !slice_is(ending->detail, run) &&
                     strlen(run) + 2 + ending->detail.len <= DETAIL_MAX;
    if (is_joined) {
        int len = snprintf(both, sizeof(both), "%s; %.*s", run, SLICE_ARG(ending->detail));
        return effect_copy(core, slice_of(both, (size_t)len));
    }
    return ending->detail.len ? ending->detail : effect_copy(core, slice_from_str(run));
}

static struct core_end describe_end(struct core *core, const struct rollout *rollout, const struct ending *ending)
{
    const struct group *group = rollout->job.group;
    const struct group_work *work = group->work;
    const struct job *last = rollout_job(group->work, rollout->job.sample);
    return (struct core_end){
        .stream = effect_copy(core, stream_name(group->stream)),
        .seq = rollout->seq,
        .rollout = rollout_name(core, &rollout->job),
        .group = effect_copy(core, group_id(group)),
        .task = effect_copy(core, group_task_id(group)),
        .sample = rollout->job.sample,
        .attempt = last->course->attempt,
        .outcome = ending->outcome,
        .trainable = ending->trainable,
        .has_reward = ending->has_reward,
        .reward = ending->reward,
        .has_raw_reward = ending->has_raw_reward,
        .raw_reward = ending->raw_reward,
        .group_ended = group->samples - work->live + 1,
        .detail = end_detail(core, rollout, ending),
        .init_layer = effect_copy(core, slice_from_str(work->init_layer)),
        .engine = effect_copy(core, engine_url(rollout->engine)),
        .wait_ms = (uint64_t)work->init_wait_ms + rollout->wait_ms,
        .init_ms = work->init_ms,
        .run_ms = rollout->run_ms,
        .eval_ms = ending->eval_ms,
        .ended_ms = (uint64_t)core->wall_ms,
        .clock_ms = (uint64_t)core_clock_ms(core),
    };
}

static void emit_end(struct core *core, const struct core_end *end, const struct ending *ending)
{
    static const enum effect_kind kinds[] = {PERSIST_END, PUBLISH_TRAJECTORY};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct effect *effect = effect_push(core, kinds[i]);
        effect->end = *end;
        effect->stream = end->stream;
        effect->seq = end->seq;
        effect->group = end->group;
        effect->rollout = end->rollout;
        effect->outcome = end->outcome;
        effect->record = ending->record;
        effect->verdict = ending->verdict;
    }
}

static void tell_sampler(struct core *core, const struct rollout *rollout, const struct ending *ending)
{
    const double *reward = ending->has_raw_reward ? &ending->raw_reward : ending->has_reward ? &ending->reward : NULL;
    sampled_note_end(core, rollout, ending->outcome == OUTCOME_CANCELLED, reward);
}

void rollout_end(struct core *core, struct rollout *rollout, const struct ending *ending)
{
    struct group *group = rollout->job.group;
    struct stream *stream = group->stream;
    assert(!rollout->ended);
    job_withdraw(core, &rollout->job);
    rollout->ended = true;
    rollout->seq = ++stream->head;
    stream->fresh = true;
    stream->pending--;
    quota_release(core, stream->owner, QUOTA_ROLLOUTS, 1);
    retention_keep(core, stream,
                   (ending->record.len ? ending->record.len : rollout->record_bytes) + ending->verdict.len);
    if (group->work->lease_ms)
        stream->under_lease--;
    core->ended[ending->outcome]++;
    stream->owner->ended[ending->outcome]++;
    counting_end(core, stream, ending->outcome, ending->trainable, ending->has_reward ? &ending->reward : NULL);
    struct core_end end = describe_end(core, rollout, ending);
    emit_end(core, &end, ending);
    tell_sampler(core, rollout, ending);
    rollout_leave_engines(core, rollout);
    session_waits_wake(core, &rollout->job);
    job_clear(&rollout->job);
    group->work->live--;
    core->live_by_init[group->work->init.place]--;
    group_close(core, group);
}

void group_end(struct core *core, struct group *group, const struct ending *ending)
{
    if (!group->work || !group_unfold(core, group))
        return;
    for (uint32_t k = 0; group->work && k < group->samples; k++)
        if (!group->work->rollouts[k].ended)
            rollout_end(core, &group->work->rollouts[k], ending);
}

void job_end(struct core *core, struct job *job, const struct ending *ending)
{
    struct rollout *rollout = job_rollout(job);
    if (rollout)
        rollout_end(core, rollout, ending);
    else
        group_end(core, job->group, ending);
}
