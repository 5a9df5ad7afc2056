/*
 * The state, rebuilt from what the ledger holds. Nothing here emits an effect. A
 * job that had begun, or could have, is an orphan until a beat adopts it or the
 * grace ends (core_tick); a rollout without a row of its own has done nothing yet.
 */
#include "broker/core_internal.h"

bool core_restore_stream(struct core *core, struct slice name, uint64_t first, uint64_t head)
{
    struct stream *stream = stream_intern(core, name);
    if (!stream)
        return false;
    if (head > stream->head)
        stream->head = head;
    if (first > 1)
        stream_forget(stream, first - 1);
    stream->fresh = true;
    return !core->failed;
}

bool core_restore_engine(struct core *core, struct slice url)
{
    return engine_intern(core, url, true) != NULL;
}

bool core_restore_group(struct core *core, const struct core_group_row *row)
{
    struct stream *stream = stream_intern(core, row->stream);
    struct group *group =
        stream ? group_create(core, row->group, stream, (uint32_t)row->samples, row->task_hash,
                              &row->task) : NULL;
    if (!group)
        return false;
    struct group_work *work = group->work;
    work->init_done = row->init_done;
    work->init_layer = core_strdup(core, row->init_layer);
    work->init_ms = row->init_ms;
    if (!row->init_done)
        job_orphan(core, &work->init);
    for (uint32_t k = 0; row->init_done && k < group->samples; k++)
        job_orphan(core, &work->rollouts[k].job);
    return !core->failed;
}

static void restore_run(struct core *core, struct rollout *rollout,
                        const struct core_rollout_row *row)
{
    rollout->run_outcome = (uint8_t)row->run_outcome;
    rollout->run_ms = row->run_ms;
    rollout->detail = core_strdup(core, row->run_detail);
    if (row->engine.len)
        rollout_set_engine(core, rollout, engine_intern(core, row->engine, false));
    job_leave(core, &rollout->job);
    job_begin_stage(&rollout->job, STAGE_EVAL);
    job_orphan(core, &rollout->job);
}

static void restore_end(struct core *core, struct rollout *rollout, uint64_t seq)
{
    struct group *group = rollout->job.group;
    struct stream *stream = group->stream;
    job_leave(core, &rollout->job);
    rollout->seq = seq;
    if (seq > stream->head)
        stream->head = seq;
    stream->pending--;
    core->live--;
    core->accepted--;
    group->work->live--;
    group_close(core, group);
}

bool core_restore_rollout(struct core *core, const struct core_rollout_row *row)
{
    struct group *group = group_find(core, row->group);
    if (!group || !group->work || row->sample >= group->samples)
        return false;
    struct rollout *rollout = &group->work->rollouts[row->sample];
    if (rollout->seq || (row->ended && !row->seq))
        return false;
    if (row->ended)
        restore_end(core, rollout, row->seq);
    else if (row->run_done && group->work->init_done)
        restore_run(core, rollout, row);
    return !core->failed;
}
