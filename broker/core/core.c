#include "broker/core/core.h"
#include "broker/core/clients/backup.h"
#include "broker/core/clients/cancel.h"
#include "broker/core/clients/delivery.h"
#include "broker/core/clients/early_cancel.h"
#include "broker/core/clients/get.h"
#include "broker/core/clients/session.h"
#include "broker/core/streams/owners.h"
#include "broker/core/clients/submit.h"
#include "broker/core/clients/watch.h"
#include "broker/core/engines/images.h"
#include "broker/core/engines/versions.h"
#include "broker/core/engines/register.h"
#include "broker/core/needs/needs.h"
#include "broker/core/queue/blocked.h"
#include "broker/core/queue/dispatch.h"
#include "broker/core/queue/expiry.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/restore.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/sampler/requests.h"
#include "broker/core/sampler/sampling.h"
#include "broker/core/sessions/sessions.h"
#include "broker/core/settle.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/status/metrics_text.h"
#include "broker/core/status/rollout_list.h"
#include "broker/core/status/status.h"
#include "broker/core/streams/streams.h"
#include "broker/core/watches/watches.h"
#include "broker/core/workers/drain.h"
#include "broker/core/workers/engine_load.h"
#include "broker/core/workers/job_reports.h"
#include "broker/core/workers/migration.h"
#include "broker/core/workers/results.h"
#include "broker/core/workers/stall.h"
#include "broker/core/workers/worker_ids.h"
#include "broker/core/workers/workers.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cmdline/duration.h"
#include "common/cmdline/size.h"

/* ---- life -------------------------------------------------------------------------- */

struct core_settings core_settings_default(void)
{
    return (struct core_settings){
#define SETTING(type, name, preset, min, max, doc) .SETTING_MEMBER_##type(name) = preset,
#include "broker/core/state/settings.def"
#undef SETTING
    };
}

static struct slice name_of_group(const void *group) { return group_id(group); }

struct core *core_create(const struct core_settings *settings, uint64_t epoch, int64_t now_ms)
{
    struct core *core = calloc(1, sizeof(*core));
    if (!core)
        return NULL;
    core->settings = *settings;
    core->epoch = epoch;
    core->restoring = true;
    core->start_ms = core->now_ms = now_ms;
    core->engine_states = epoch << 32;
    core->heads_ms = now_ms + settings->head_period_ms;
    core->groups.name_of = name_of_group;
    core->groups.seed = core->streams_by_name.seed = core->workers_by_id.seed = core->clients_by_name.seed =
        epoch * 0x9e3779b97f4a7c15u;
    list_init(&core->streams);
    list_init(&core->clients);
    list_init(&core->workers);
    list_init(&core->engines);
    list_init(&core->policies);
    core->random = core->groups.seed;
    core->claims.seed = core->progress.seed = core->sessions.seed = core->images.seed = core->early_cancels.seed =
        core->early_cancel_owners.seed = core->watches.seed = core->groups.seed;
    list_init(&core->idle_images);
    list_init(&core->failed_images);
    list_init(&core->noted_engines);
    list_init(&core->working_images);
    list_init(&core->samplers);
    list_init(&core->noted_samplers);
    list_init(&core->sweeps);
    list_init(&core->forgotten);
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
        list_init(&core->waiting_needs[stage]);
        list_init(&core->offers[stage]);
    }
    for (unsigned place = 0; place < PLACE_COUNT; place++)
        for (unsigned stage = 0; stage < STAGE_COUNT; stage++)
            list_init(&core->queues[place][stage].jobs);
    effect_push(core, PERSIST_EPOCH)->seq = epoch;
    if (core->failed)
        core_destroy(&core);
    return core;
}

void core_destroy(struct core **pointer)
{
    struct core *core = *pointer;
    struct worker *worker;
    struct stream *stream;
    struct engine *engine;
    struct policy *policy;
    struct client *client;
    size_t at = 0;
    if (!core)
        return;
    *pointer = NULL;
    while (!list_is_empty(&core->samplers))
        sampler_destroy(core, container_of(core->samplers.next, struct sampler, link));
    restore_drop(core);
    for (struct group *group; (group = table_next(&core->groups, &at));)
        group_destroy(group);
    LIST_EACH(worker, &core->workers, link)
        worker_destroy(core, worker);
    LIST_EACH(stream, &core->streams, link)
        stream_destroy(stream);
    LIST_EACH(client, &core->clients, link)
        client_destroy(client);
    LIST_EACH(engine, &core->engines, link)
        free(engine);
    LIST_EACH(policy, &core->policies, link)
        free(policy);
    sweeps_finish(core);
    images_finish(core);
    needs_finish(core);
    early_cancels_finish(core);
    job_progress_finish(core);
    sessions_finish(core);
    watches_finish(core);
    heap_finish(&core->expiries);
    heap_finish(&core->breakers);
    heap_finish(&core->probes);
    heap_finish(&core->sampler_waits);
    table_finish(&core->groups);
    table_finish(&core->streams_by_name);
    table_finish(&core->clients_by_name);
    table_finish(&core->workers_by_id);
    heap_finish(&core->timers);
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
        heap_finish(&core->free[stage]);
        heap_finish(&core->fair_queues[stage].heap);
    }
    free(core->lost_workers.ring);
    free(core->id_conflicts.ring);
    claims_finish(core);
    effect_list_finish(&core->effects);
    buffer_finish(&core->scratch);
    free(core);
}

void core_set_start_id(struct core *core, uint64_t start_id) { core->start_id = start_id; }

void core_set_placing(struct core *core, enum placing placing) { core->placing = placing; }

bool core_failed(const struct core *core) { return core->failed; }

/* Every step begins so: sets the time; false if the core has failed. */
static bool begin(struct core *core, int64_t now_ms)
{
    if (now_ms > core->now_ms) /* the clock does not go back, whatever the caller says */
        core->now_ms = now_ms;
    if (core->restoring)
        restore_finish(core);
    return !core->failed;
}

/* ---- messages ---------------------------------------------------------------------- */

static void (*const handlers[MESSAGE_COUNT])(struct core *, const struct call *) = {
    [MSG_group_submit] = handle_group_submit,     [MSG_rollout_get] = handle_rollout_get,
    [MSG_rollout_cancel] = handle_rollout_cancel, [MSG_stream_fetch] = handle_stream_fetch,
    [MSG_stream_ack] = handle_stream_ack,         [MSG_engine_add] = handle_engine_add,
    [MSG_engine_remove] = handle_engine_remove,   [MSG_engine_drain] = handle_engine_drain,
    [MSG_engine_load] = handle_engine_load,       [MSG_policy_set] = handle_policy_set,
    [MSG_policy_pause] = handle_policy_pause,     [MSG_policy_resume] = handle_policy_resume,
    [MSG_rollout_list] = handle_rollout_list,     [MSG_stream_renew] = handle_stream_renew,
    [MSG_ledger_backup] = handle_ledger_backup,   [MSG_status_get] = handle_status_get,
    [MSG_worker_drain] = handle_worker_drain,     [MSG_worker_beat] = handle_worker_beat,
    [MSG_job_result] = handle_job_result,         [MSG_job_migrated] = handle_job_migrated,
    [MSG_job_progress] = handle_job_progress,     [MSG_sampler_open] = handle_sampler_open,
    [MSG_sampler_get] = handle_sampler_get,       [MSG_sampler_next] = handle_sampler_next,
    [MSG_sampler_close] = handle_sampler_close,   [MSG_session_get] = handle_session_get,
    [MSG_session_open] = handle_session_open,     [MSG_rollout_watch] = handle_rollout_watch,
    [MSG_rollout_live] = handle_rollout_live,     [MSG_metrics_get] = handle_metrics_get,
};

static uint64_t tag_of(enum message_id id, const void *in)
{
    const struct message *message = message_get(id);
    for (size_t i = 0; i < message->field_count; i++)
        if (strcmp(message->fields[i].name, "tag") == 0)
            return *(const uint64_t *)((const uint8_t *)in + message->fields[i].offset);
    return 0;
}

/* Whether a message of this kind may come from there. */
static bool is_from(enum message_id id, const struct caller *caller)
{
    enum message_sender sender = message_get(id)->sender;
    bool is_client = sender == SENDER_CLIENT || sender == SENDER_ADMIN;
    return handlers[id] && is_client == (caller->route.len > 0);
}

static void see_wall(struct core *core, int64_t wall_ms)
{
    core->wall_ms = wall_ms;
    if (!core->has_clock)
        core_restore_clock(core, wall_ms);
}

void core_handle(struct core *core, int64_t now_ms, int64_t wall_ms, const struct caller *caller, enum message_id id,
                 const void *in, const struct core_task *task, uint64_t task_hash)
{
    if (!begin(core, now_ms))
        return;
    see_wall(core, wall_ms);
    struct call call = {caller->route, id, in, tag_of(id, in), task, task_hash, caller};
    if (!is_from(id, caller) && caller->route.len)
        send_refused(core, &call, REFUSAL_UNKNOWN_MESSAGE, NULL, 0, "a client may not send %s", message_get(id)->wire);
    else if (!is_from(id, caller))
        core->counters.mistakes++; /* a worker has no address to refuse it at */
    else if (message_get(id)->sender == SENDER_ADMIN && !caller->is_admin)
        send_refused(core, &call, REFUSAL_NOT_ALLOWED, NULL, 0, "only an admin may send %s", message_get(id)->wire);
    else
        handlers[id](core, &call);
    settle(core);
}

/* ---- time -------------------------------------------------------------------------- */

static void end_adoption(struct core *core)
{
    core->adopting = false;
    claims_finish(core);
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
        struct queue *orphans = &core->queues[PLACE_ORPHAN][stage];
        while (orphans->count)
            job_queue(core, container_of(orphans->jobs.prev, struct job, link), true);
    }
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t next_due(const struct core *core)
{
    int64_t due = earlier(earlier(core->heads_ms, versions_due(core)), samplers_due(core));
    const struct heap *const heaps[] = {&core->timers, &core->expiries, &core->breakers, &core->early_cancel_times,
                                        &core->session_waits};
    for (size_t i = 0; i < sizeof(heaps) / sizeof(*heaps); i++) {
        const struct heap_node *first = heap_peek(heaps[i]);
        if (first)
            due = earlier(due, first->key);
    }
    if (core->adopting)
        due = earlier(due, core->adopt_until_ms);
    if (!list_is_empty(&core->workers)) {
        const struct worker *oldest = container_of(core->workers.next, struct worker, link);
        due = earlier(due, oldest->beat_ms + core->settings.beat_timeout_ms);
    }
    bool has_more = !list_is_empty(&core->sweeps) || !list_is_empty(&core->failed_images);
    return has_more || due < core->now_ms ? core->now_ms : due;
}

int64_t core_tick(struct core *core, int64_t now_ms, int64_t wall_ms)
{
    bool has_begun = begin(core, now_ms);
    see_wall(core, wall_ms);
    if (!has_begun)
        return core->now_ms + core->settings.head_period_ms;
    workers_tick(core);
    jobs_tick(core);
    breakers_tick(core);
    versions_tick(core);
    expiries_tick(core);
    images_tick(core);
    early_cancels_tick(core);
    sweeps_tick(core);
    samplers_tick(core);
    sessions_tick(core);
    if (core->adopting && core->now_ms >= core->adopt_until_ms)
        end_adoption(core);
    streams_tick(core);
    settle(core);
    return next_due(core);
}

void core_dispatch(struct core *core, int64_t now_ms)
{
    if (begin(core, now_ms))
        dispatch(core);
}

/* ---- what the I/O side asks and says ---------------------------------------------------- */

struct effects core_effects(const struct core *core)
{
    return (struct effects){core->effects.items, core->effects.count};
}

void core_effects_take(struct core *core, struct effect_list *list)
{
    const struct effect_list taken = core->effects;
    core->effects = *list;
    *list = taken;
    core->live_bytes = 0;
    core->forgotten_taken = core->forgotten_count;
}

void core_effects_done(struct core *core)
{
    groups_trim(core, core->forgotten_taken);
    core->forgotten_taken = 0;
}

uint64_t core_lane_changes(const struct core *core) { return core->lane_changes; }

void core_effects_clear(struct core *core)
{
    effect_list_clear(&core->effects);
    core->live_bytes = 0;
    groups_trim(core, core->forgotten_count);
}

bool core_remembers(const struct core *core, struct slice group) { return group_find(core, group) != NULL; }

bool core_may_read(struct core *core, const struct caller *caller, struct slice name)
{
    return begin(core, core->now_ms) && owners_may_read(core, caller, name);
}

bool core_is_owner(const struct core *core, const struct caller *caller, struct slice name)
{
    const struct stream *stream = stream_find(core, name);
    return stream && caller_owns(caller, stream);
}

void core_nobody_reads(struct core *core, struct slice name)
{
    struct stream *stream = stream_find(core, name);
    if (begin(core, core->now_ms) && stream && !stream->is_used)
        stream_remove(core, stream);
}

bool core_lane_broke(struct core *core, int64_t now_ms, struct slice id)
{
    if (!begin(core, now_ms))
        return false;
    const bool is_loss = worker_lane_broke(core, worker_find(core, id));
    settle(core);
    return is_loss;
}

void core_lane_waits(struct core *core, int64_t now_ms, struct slice id, struct slice why)
{
    if (begin(core, now_ms))
        worker_lane_waits(core, worker_find(core, id), why);
}

void core_stalled(struct core *core, int64_t now_ms, int64_t stalled_ms)
{
    if (begin(core, now_ms) && stalled_ms > 0)
        stall_give_back(core, stalled_ms);
}

void core_held_up(struct core *core, int64_t now_ms, int64_t held_up_ms)
{
    if (begin(core, now_ms) && held_up_ms > 0)
        stall_spare_jobs(core, held_up_ms);
}

void core_tell_unread(struct core *core, int64_t now_ms, struct slice from, struct slice why)
{
    core->counters.mistakes++;
    core->unread.count++;
    core->unread.at_ms = now_ms;
    snprintf(core->unread.from, sizeof(core->unread.from), "%.*s", (int)(from.len < 128 ? from.len : 128),
             (const char *)from.data);
    snprintf(core->unread.why, sizeof(core->unread.why), "%.*s", (int)(why.len < 256 ? why.len : 256),
             (const char *)why.data);
}

void core_tell_live_dropped(struct core *core, uint64_t count) { core->counters.live_dropped += count; }

void core_tell_store(struct core *core, const struct core_store *store) { core->store = *store; }

void core_tell_process(struct core *core, const struct core_process *process) { core->process = *process; }

void core_disk_is_low(struct core *core, bool is_low) { core->is_disk_low = is_low; }

bool core_status(const struct core *core, int64_t now_ms, struct buffer *out)
{
    return status_whole(core, now_ms, out);
}

bool core_metrics(const struct core *core, bool is_openmetrics, struct buffer *out)
{
    metrics_write(core, is_openmetrics, out);
    return !out->failed;
}
