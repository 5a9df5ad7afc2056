/*
 * The state, rebuilt from what the ledger holds. Nothing here emits an effect. A
 * rollout of which no row is told was acknowledged and is forgotten. A job that had
 * begun, or could have, is an orphan until a beat adopts it or the grace ends.
 */
#include "broker/core/restore.h"
#include "broker/core/clients/early_cancel.h"
#include "broker/core/core.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/identity.h"
#include "broker/core/engines/policies.h"
#include "broker/core/engines/register.h"
#include "broker/core/queue/expiry.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/history.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/retention.h"
#include "broker/core/streams/streams.h"
#include "broker/core/workers/worker_ids.h"
#include "schemas/messages/message_max.h"

enum { SAMPLES_MAX = MESSAGE_MAX(group_submit, samples) };

bool core_restore_stream(struct core *core, struct slice name, struct slice owner, uint64_t first, uint64_t head)
{
    bool makes_sense = first <= INT64_MAX && head < INT64_MAX && first <= head + 1;
    struct stream *stream = makes_sense ? stream_intern(core, name, owner) : NULL;
    if (!stream)
        return false;
    if (head > stream->head)
        stream->head = head;
    if (first > stream->first)
        stream->first = first;
    stream->fresh = stream->is_used = true;
    return !core->failed;
}

void core_restore_versions(struct core *core, uint64_t highest) { core->versions = highest; }

bool core_restore_engine(struct core *core, const struct core_engine *row) { return engine_restore(core, row); }

bool core_restore_room(struct core *core, uint64_t groups)
{
    core->failed |= !table_reserve(&core->groups, groups);
    return !core->failed;
}

/* A million groups may be told of: they are put into their table a few at once. */
static bool enter_told(struct core *core)
{
    const size_t count = core->told_count, entered = table_put_many(&core->groups, (void **)core->told, count);
    for (size_t i = entered; i < count; i++) /* there is no memory, or the ledger has a group twice */
        group_destroy(core->told[i]);
    core->told_count = 0;
    if (entered < count)
        core->told_last = NULL;
    core->failed |= entered < count;
    return !core->failed;
}

static bool tell(struct core *core, struct group *group)
{
    core->told[core->told_count++] = core->told_last = group;
    return core->told_count < TABLE_MANY || enter_told(core);
}

bool core_restore_group(struct core *core, const struct core_group_row *row)
{
    if (row->samples < 1 || row->samples > SAMPLES_MAX)
        return false;
    struct stream *stream = stream_intern(core, row->stream, slice_of(NULL, 0));
    if (stream)
        stream->is_used = true;
    struct group *group = stream
                              ? group_make(core, row->group, stream, (uint32_t)row->samples, row->task_hash, &row->task)
                              : NULL;
    if (!group)
        return false;
    group->work->priority = row->priority < PRIORITIES ? (uint8_t)row->priority : PRIORITY_USUAL;
    int64_t age_ms = row->accepted_ms ? core_age_ms(core, row->accepted_ms) : 0;
    group->work->lease_ms = row->lease_ms < UINT32_MAX ? (uint32_t)row->lease_ms : UINT32_MAX;
    expiry_arm(core, group, row->task.total_ms, age_ms);
    group->work->init_done = row->init_done;
    group->work->init_layer = core_strdup(core, row->init_layer);
    group->work->init_ms = core_ms(row->init_ms);
    if (!row->task.id.len) /* a group without a task has no rollouts left */
        group_close(core, group);
    return tell(core, group) && !core->failed;
}

/* Its rollouts are told of after it. */
static struct group *find_group(struct core *core, struct slice id)
{
    if (core->told_last && slice_equal(group_id(core->told_last), id))
        return core->told_last;
    return enter_told(core) ? group_find(core, id) : NULL;
}

static void restore_run(struct core *core, struct rollout *rollout, const struct core_rollout_row *row)
{
    rollout->run_outcome = (uint8_t)row->run_outcome;
    rollout->run_ms = core_ms(row->run_ms);
    rollout->record_bytes = (uint32_t)row->record_bytes;
    rollout->detail = core_strdup(core, row->run_detail);
    if (row->engine.len)
        job_set_engine(core, &rollout->job, engine_intern(core, row->engine));
    job_begin_stage(&rollout->job, STAGE_EVAL);
}

static void restore_begun(struct core *core, struct rollout *rollout, const struct core_rollout_row *row)
{
    if (row->run_done)
        restore_run(core, rollout, row);
    rollout->is_run_again = row->run_again;
    job_orphan(core, &rollout->job);
}

static void restore_live(struct core *core, struct group *group, const struct core_rollout_row *row)
{
    struct group_work *work = group->work;
    if (work->rollouts)
        work->rollouts[row->sample].ended = false;
    group_count(core, group, 1);
    if (work->init_done)
        restore_begun(core, &work->rollouts[row->sample], row);
    else if (work->init.place == PLACE_NONE)
        job_orphan(core, &work->init);
}

/* Of rollouts that are told of in their order, and live, only the number is needed, until init is done. */
static bool stays_folded(const struct group_work *work, const struct core_rollout_row *row)
{
    return !work->rollouts && !work->init_done && !row->ended && row->sample == work->live;
}

bool core_restore_rollout(struct core *core, const struct core_rollout_row *row)
{
    struct group *group = find_group(core, row->group);
    if (!group || !group->work || row->sample >= group->samples || (row->ended && !row->seq))
        return false;
    if (!stays_folded(group->work, row) && !group_unfold(core, group))
        return false;
    struct rollout *rollout = group->work->rollouts ? &group->work->rollouts[row->sample] : NULL;
    if (rollout && (rollout->seq || !rollout->ended))
        return false;
    if (!row->ended) {
        restore_live(core, group, row);
        return !core->failed;
    }
    rollout->seq = row->seq;
    if (row->seq > group->stream->head)
        group->stream->head = row->seq;
    retention_note(core, group->stream, row->seq, row->record_bytes, row->ended_ms);
    return !core->failed;
}

void core_restore_clock(struct core *core, int64_t clock_ms)
{
    enum { YEARS_MAX = 100000 }; /* what cannot be a time is none, and cannot overflow */
    const int64_t most_ms = (int64_t)YEARS_MAX * 366 * 86400000;
    core->has_clock = true;
    clock_ms = clock_ms < 0 ? 0 : clock_ms > most_ms ? most_ms : clock_ms;
    core->clock_offset_ms = clock_ms - core->now_ms;
}

bool core_restore_end(struct core *core) { return enter_told(core); }

void restore_drop(struct core *core)
{
    while (core->told_count)
        group_destroy(core->told[--core->told_count]);
}

void restore_finish(struct core *core)
{
    struct stream *stream;
    if (!enter_told(core))
        return;
    core->restoring = false;
    core->told_last = NULL;
    core->adopt_until_ms = core->now_ms + core->settings.adopt_grace_ms;
    LIST_EACH(stream, &core->streams, link) {
        retention_restore(core, stream);
        stream_renew(core, stream);
        for (struct list *at = stream->live.next, *then; at != &stream->live; at = then) {
            struct group *group = container_of(at, struct group, live);
            then = at->next;
            if (group->work->live < group->samples && !group_unfold(core, group))
                return;
            policy_restore_group(group->work);
            group_close(core, group);
        }
    }
    policies_restored(core);
}

bool core_restore_policy(struct core *core, const struct core_policy *row)
{
    struct policy *policy = policy_intern(core, row->name);
    if (policy)
        policy->identity = identity_of(row->tokenizer, row->template);
    return policy != NULL;
}

/* ---- what hangs on jobs and names --------------------------------------------------------- */

bool core_restore_failures(struct core *core, const struct core_failures *row)
{
    if (!enter_told(core))
        return false;
    struct job *job = job_find(core, row->job);
    return !job || job->course->failures || history_restore(core, job, row);
}

bool core_restore_lease(struct core *core, const struct core_lease *lease)
{
    if (!enter_told(core))
        return false;
    struct job *job = job_find(core, lease->job);
    bool makes_sense = lease->worker.len >= 1 && lease->worker.len <= WORKER_NAME_MAX &&
                       lease->key.len <= WORKER_KEY_MAX && fencing_token_is_possible(core, lease->token);
    if (!job || !makes_sense)
        return true;
    fencing_token_restore(core, job, lease, job_failures(job)->fenced_up_to);
    claims_note(core, lease->worker, lease->key);
    return !core->failed;
}

bool core_restore_early_cancel(struct core *core, struct slice name, struct slice owner, uint64_t clock_ms)
{
    return early_cancel_restore(core, name, owner, clock_ms);
}

/* ---- samplers --------------------------------------------------------------------------- */

bool core_restore_sampler(struct core *core, const struct core_sampler *row, struct slice answer)
{
    return sampler_restore(core, row, answer);
}

static void restore_released(struct core *core, struct group *group, const struct sampled *sampled)
{
    expiry_arm(core, group, group->work->total_ms, core_age_ms(core, sampled->row.released_ms));
    if (sampled->row.is_low)
        group->work->priority = 0;
}

bool core_restore_sampled(struct core *core, const struct core_sampled *row)
{
    struct group *group = find_group(core, row->group);
    struct sampled *sampled = sampled_restore(core, row);
    if (!sampled)
        return false;
    if (row->state != SAMPLED_HELD && row->state != SAMPLED_LIVE)
        return !core->failed;
    if (!group || !group->work || group->stream != sampled->sampler->stream || group->samples != sampled->row.samples)
        return false;
    sampled_join(sampled, group);
    if (row->state == SAMPLED_LIVE)
        restore_released(core, group, sampled);
    else if (group->work->init.place == PLACE_ORPHAN)
        job_hold(core, &group->work->init);
    return !core->failed;
}
