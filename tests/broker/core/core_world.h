/*
 * core_world.h - a world for the core's scenarios: a made-up clock, and verbs for
 * what clients and workers say. After each verb the core dispatches, core_check
 * must be content, and what the core wants done is laid out in world->seen,
 * decoded, until the next verb.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_WORLD_H
#define SLUICE_TESTS_BROKER_CORE_CORE_WORLD_H

#include "tests/broker/core/core_seen.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEEN_MAX = 16384, HANDED_MAX = 8192, WALL_MS = 1763697600 };

/* A job as it was handed out last. */
struct handed {
    char job[160];
    uint64_t token;
};

struct world {
    struct core *core;
    struct core_settings settings;
    struct core_task task;
    int64_t now_ms, due_ms;
    uint64_t epoch, progress;
    struct seen *seen;
    size_t seen_count;
    struct handed handed[HANDED_MAX];
    size_t handed_count;
    const char *name;         /* of the client that speaks, or NULL: an admin without one */
    bool is_admin;            /* where it has a name */
    bool lane_connects;       /* of the next beats */
    const char *lane_refused; /* why the broker does not connect to the lanes of the next beats, or NULL */
    const char *key;          /* the name of the key of the worker that speaks, or NULL: nobody is asked for one */
    uint64_t priority;        /* of the next submits; 0: not said (say 10 for 0) */
    uint64_t lease_ms;        /* of the next submits; 0: none */
};

#define TEXT(s) slice_from_str(s)

static inline void world_note_job(struct world *world, const struct seen *seen)
{
    size_t i = 0;
    while (i < world->handed_count && strcmp(world->handed[i].job, seen->job) != 0)
        i++;
    assert_true(i < HANDED_MAX);
    world->handed_count += i == world->handed_count;
    memcpy(world->handed[i].job, seen->job, sizeof(seen->job));
    world->handed[i].token = seen->token;
}

/* The token under which a job was handed out last. */
static inline uint64_t token_of(const struct world *world, const char *job)
{
    for (size_t i = 0; i < world->handed_count; i++)
        if (!strcmp(world->handed[i].job, job))
            return world->handed[i].token;
    fail_msg("%s was never handed out", job);
    return 0;
}

/* What the I/O side does at the end of a cycle. */
static inline void world_settle(struct world *world)
{
    core_dispatch(world->core, world->now_ms);
    const char *broken = core_check(world->core);
    if (broken)
        fail_msg("core_check: %s", broken);
    struct effects effects = core_effects(world->core);
    assert_true(effects.count <= SEEN_MAX);
    for (size_t i = 0; i < effects.count; i++) {
        world_read_effect(&world->seen[i], &effects.items[i]);
        if (world->seen[i].kind == LANE_JOB)
            world_note_job(world, &world->seen[i]);
    }
    world->seen_count = effects.count;
    core_effects_clear(world->core);
}

static inline struct world *world_create(void)
{
    struct world *world = calloc(1, sizeof(*world));
    world->seen = calloc(SEEN_MAX, sizeof(*world->seen));
    world->settings = core_settings_default();
    world->task = (struct core_task){.id = TEXT("add"), .limit_ms = {10000, 20000, 30000}};
    world->now_ms = 1000000;
    world->epoch = 3;
    return world;
}

static inline void world_start(struct world *world)
{
    world->core = core_create(&world->settings, world->epoch, world->now_ms);
    assert_non_null(world->core);
}

static inline struct world *world_open(void)
{
    struct world *world = world_create();
    world_start(world);
    world_settle(world);
    return world;
}

static inline void world_close(struct world *world)
{
    core_destroy(&world->core);
    assert_null(world->core);
    free(world->seen);
    free(world);
}

/* ---- verbs ------------------------------------------------------------------------- */

static inline void world_say(struct world *world, const char *client, enum message_id id, const void *in)
{
    bool submits = id == MSG_group_submit;
    struct caller caller = {.route = TEXT(client),
                            .name = TEXT(*client ? world->name : world->key),
                            .is_admin = !world->name || world->is_admin,
                            .lane_connects = world->lane_connects,
                            .lane_refused = TEXT(*client ? NULL : world->lane_refused)};
    uint64_t hash = 0;
    for (size_t i = 0; submits && i < ((const struct msg_group_submit *)in)->task.len; i++)
        hash = hash * 31 + ((const struct msg_group_submit *)in)->task.data[i];
    const bool is_told = submits || id == MSG_rollout_get; /* what the ledger knows of the group */
    core_handle(world->core, world->now_ms, WALL_MS, &caller, id, in, is_told ? &world->task : NULL, hash);
    world_settle(world);
}

static inline void world_submit_task(struct world *world, const char *group, const char *stream, uint64_t samples,
                                     const char *task)
{
    struct msg_group_submit in = {.tag = 7,
                                  .group = TEXT(group),
                                  .stream = TEXT(stream),
                                  .samples = samples,
                                  .task = TEXT(task),
                                  .has_priority = world->priority > 0,
                                  .priority = world->priority % 10,
                                  .has_lease_ms = world->lease_ms > 0,
                                  .lease_ms = world->lease_ms};
    world_say(world, "trainer", MSG_group_submit, &in);
}

static inline void world_submit(struct world *world, const char *group, uint64_t samples)
{
    world_submit_task(world, group, "train", samples, "{}");
}

/* What a beat says beyond the usual; `holds` is pairs "job", token, ended by NULL. */
struct beat {
    uint64_t slots;
    const char *lane;
    bool draining, bundles, shares_tasks;
    uint64_t epoch;    /* 0: this one */
    uint64_t progress; /* 0: grows by itself */
    uint64_t engines;  /* the newest lane.engine it has taken */
    const char *sandbox, *sandbox_why, *kernel, *node_error;
    const char *offers; /* of its handlers */
    uint64_t sandboxes;
};

static inline void world_beat_with(struct world *world, const char *worker, const char *stage, struct beat beat, ...)
{
    struct buffer packed = {0};
    uint32_t count = 0;
    va_list holds;
    va_start(holds, beat);
    for (const char *job; (job = va_arg(holds, const char *)); count++)
        assert_true(jobs_append(&packed, TEXT(job), va_arg(holds, uint64_t)));
    va_end(holds);
    struct msg_worker_beat in = {.worker = TEXT(worker),
                                 .stage = TEXT(stage),
                                 .slots = beat.slots ? beat.slots : 1,
                                 .lane = TEXT(beat.lane ? beat.lane : "tcp://10.0.0.7:20417"),
                                 .host = TEXT("node7"),
                                 .progress = beat.progress ? beat.progress : 1000 + ++world->progress,
                                 .draining = beat.draining,
                                 .epoch = beat.epoch ? beat.epoch : world->epoch,
                                 .engines = beat.engines,
                                 .has_engines = beat.engines > 0,
                                 .sandbox = TEXT(beat.sandbox),
                                 .sandbox_why = TEXT(beat.sandbox_why),
                                 .kernel = TEXT(beat.kernel),
                                 .has_sandbox = beat.sandbox,
                                 .has_sandbox_why = beat.sandbox_why,
                                 .has_kernel = beat.kernel,
                                 .node_error = TEXT(beat.node_error),
                                 .has_node_error = beat.node_error,
                                 .offers = TEXT(beat.offers),
                                 .has_offers = beat.offers,
                                 .sandboxes = beat.sandboxes,
                                 .has_sandboxes = beat.sandbox,
                                 .bundles = beat.bundles,
                                 .has_bundles = beat.bundles,
                                 .shares_tasks = beat.shares_tasks,
                                 .has_shares_tasks = beat.shares_tasks,
                                 .jobs = {buffer_peek(&packed), count}};
    world_say(world, "", MSG_worker_beat, &in);
    buffer_finish(&packed);
}

/* world_beat(world, "w1", "run", slots, "run:g/0", token, ..., NULL) */
#define world_beat(world, worker, stage, slots_, ...)                                                                  \
    world_beat_with(world, worker, stage, (struct beat){.slots = (slots_)}, __VA_ARGS__)

static inline void world_result_with(struct world *world, const char *worker, const char *job, uint64_t token,
                                     const char *outcome, struct msg_job_result in)
{
    in.worker = TEXT(worker);
    in.job = TEXT(job);
    in.token = token;
    in.outcome = TEXT(outcome);
    if (!in.ms)
        in.ms = 35;
    world_say(world, "", MSG_job_result, &in);
}

static inline void world_result(struct world *world, const char *worker, const char *job, uint64_t token,
                                const char *outcome)
{
    world_result_with(world, worker, job, token, outcome, (struct msg_job_result){0});
}

static inline void world_reward(struct world *world, const char *worker, const char *job, uint64_t token, double reward)
{
    world_result_with(world, worker, job, token, "ok", (struct msg_job_result){.reward = reward, .has_reward = true});
}

/* The clock moves and the core ticks once. */
static inline void world_wait(struct world *world, int64_t ms)
{
    world->now_ms += ms;
    world->due_ms = core_tick(world->core, world->now_ms, WALL_MS);
    world_settle(world);
}

static inline void world_break_lane(struct world *world, const char *worker)
{
    core_lane_broke(world->core, world->now_ms, TEXT(worker));
    world_settle(world);
}

static inline void world_cancel(struct world *world, const char *rollout, const char *group, const char *stream)
{
    struct msg_rollout_cancel in = {.tag = 11,
                                    .rollout = TEXT(rollout),
                                    .has_rollout = rollout,
                                    .group = TEXT(group),
                                    .has_group = group,
                                    .stream = TEXT(stream),
                                    .has_stream = stream};
    world_say(world, "trainer", MSG_rollout_cancel, &in);
}

static inline void world_engine(struct world *world, enum message_id id, const char *url)
{
    struct msg_engine_add in = {.tag = 12, .url = TEXT(url)};
    struct msg_engine_remove out = {.tag = 13, .url = TEXT(url)};
    world_say(world, "operator", id, id == MSG_engine_add ? (void *)&in : (void *)&out);
}

/* What a worker says was at fault. */
static inline void world_blame(struct world *world, const char *worker, const char *job, const char *outcome,
                               const char *fault, const char *detail)
{
    world_result_with(
        world, worker, job, token_of(world, job), outcome,
        (struct msg_job_result){.fault = TEXT(fault), .has_fault = fault, .detail = TEXT(detail), .has_detail = true});
}

static inline void world_get(struct world *world, const char *rollout)
{
    struct msg_rollout_get in = {.tag = 10, .rollout = TEXT(rollout)};
    world_say(world, "trainer", MSG_rollout_get, &in);
}

static inline void world_ack(struct world *world, const char *stream, uint64_t seq)
{
    struct msg_stream_ack in = {.tag = 9, .stream = TEXT(stream), .seq = seq};
    world_say(world, "trainer", MSG_stream_ack, &in);
}

/* ---- what was seen ----------------------------------------------------------------- */

/* The n-th (from 0) effect of a kind since the last verb, or NULL. */
static inline const struct seen *seen_nth(const struct world *world, enum effect_kind kind, size_t n)
{
    for (size_t i = 0; i < world->seen_count; i++)
        if (world->seen[i].kind == kind && n-- == 0)
            return &world->seen[i];
    return NULL;
}

static inline size_t seen_count(const struct world *world, enum effect_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < world->seen_count; i++)
        count += world->seen[i].kind == kind;
    return count;
}

static inline const struct seen *expect(const struct world *world, enum effect_kind kind)
{
    const struct seen *seen = seen_nth(world, kind, 0);
    if (!seen)
        fail_msg("no effect of kind %d among %zu", kind, world->seen_count);
    return seen;
}

/* The job was handed to the worker just now. */
static inline uint64_t expect_job(const struct world *world, const char *worker, const char *job)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *seen = &world->seen[i];
        if (seen->kind == LANE_JOB && !strcmp(seen->job, job) && !strcmp(seen->worker, worker))
            return seen->token;
    }
    fail_msg("%s was not handed to %s", job, worker);
    return 0;
}

static inline bool was_told(const struct world *world, const char *worker, enum message_id id, const char *job)
{
    for (size_t i = 0; i < world->seen_count; i++) {
        const struct seen *seen = &world->seen[i];
        if (seen->kind == LANE_SEND && seen->message == id && !strcmp(seen->worker, worker) &&
            (!job || !strcmp(seen->job, job)))
            return true;
    }
    return false;
}

static inline const struct seen *expect_answer(const struct world *world, enum message_id id)
{
    const struct seen *seen = expect(world, SEND_CLIENT);
    if (seen->message != id)
        fail_msg("answered %s, not %s: %s", message_get(seen->message)->wire, message_get(id)->wire, seen->text);
    return seen;
}

static inline const struct seen *expect_refused(const struct world *world, enum refusal_reason reason)
{
    const struct seen *seen = expect_answer(world, MSG_refused);
    assert_string_equal(seen->reason, refusal_wire(reason));
    return seen;
}

/* The one rollout that ended just now. */
static inline const struct seen *expect_end(const struct world *world, const char *rollout, enum outcome outcome)
{
    const struct seen *end = expect(world, PERSIST_END);
    assert_int_equal(seen_count(world, PERSIST_END), 1);
    assert_int_equal(seen_count(world, PUBLISH_TRAJECTORY), 1);
    assert_string_equal(end->end_rollout, rollout);
    assert_string_equal(outcome_wire(end->end.outcome), outcome_wire(outcome));
    assert_int_equal(end->end.seq, expect(world, PUBLISH_TRAJECTORY)->seq);
    return end;
}

/* The broker's status as JSON, until the next call. */
static inline const char *world_status(struct world *world)
{
    static char text[65536];
    struct buffer out = {0};
    assert_true(core_status(world->core, world->now_ms, &out) && out.len < sizeof(text));
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    buffer_finish(&out);
    return text;
}

/* A worker of each stage, a group of n whose init has ended; its runs are queued. */
static inline void world_reach_run(struct world *world, const char *group, uint64_t samples)
{
    char job[160];
    snprintf(job, sizeof(job), "init:%s", group);
    world_beat(world, "i1", "init", 8, NULL);
    world_submit(world, group, samples);
    world_result(world, "i1", job, expect_job(world, "i1", job), "ok");
    assert_int_equal(seen_count(world, PERSIST_INIT), 1);
}

/* As above, then rollout <group>/0 of a group of one waits for its eval. */
static inline void world_reach_eval(struct world *world, const char *group, const char *outcome)
{
    char job[160];
    snprintf(job, sizeof(job), "run:%s/0", group);
    world_reach_run(world, group, 1);
    world_beat(world, "r1", "run", 8, NULL);
    world_result(world, "r1", job, expect_job(world, "r1", job), outcome);
    assert_int_equal(seen_count(world, PERSIST_RUN), 1);
}

#endif
