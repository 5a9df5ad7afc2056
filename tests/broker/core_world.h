/*
 * core_world.h - a world for the core's scenarios: a made-up clock, and verbs for
 * what clients and workers say. After each verb the core dispatches, core_check
 * must be content, and what the core wants done is laid out in world->seen,
 * decoded, until the next verb.
 */
#ifndef SLUICE_TESTS_CORE_WORLD_H
#define SLUICE_TESTS_CORE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/core.h"

enum { SEEN_MAX = 16384, HANDED_MAX = 8192, WALL_MS = 1763697600 };

/* One effect, in strings and numbers that stay. */
struct seen {
    enum effect_kind kind;
    enum message_id message; /* SEND_CLIENT, LANE_SEND, PUBLISH_HEAD, SEND_RANGE */
    char client[64], worker[160], endpoint[256], job[160], group[128], rollout[160], stream[80];
    char engine[280], detail[512], record[64], reason[64], field[64], text[512];
    char state[32], stage[16], owner[80];
    uint64_t priority, tag, seq, limit, token, attempt, ms, count, samples, first, head, pending, retry_ms;
    bool known, present;
    struct core_end end;
    char trouble_job[160], history[1100]; /* PERSIST_TROUBLE, and its counts */
    struct core_trouble trouble;
    uint64_t row_runs_max; /* PERSIST_ENGINE */
    bool row_draining;
    char version[32], calls[16]; /* PERSIST_ENGINE, lane.engine */
    uint64_t paused_until_ms;
    uint64_t lease_ms, accepted_ms;
    char end_detail[2048], end_engine[280], end_layer[96], end_rollout[160];
};

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
    const char *name; /* of the client that speaks, or NULL: an admin without one */
    bool is_admin;    /* where it has a name */
    uint64_t priority; /* of the next submits; 0: not said (say 10 for 0) */
    uint64_t lease_ms; /* of the next submits; 0: none */
};

#define TEXT(s) slice_from_str(s)

static inline void world_copy(char *to, size_t size, struct slice from)
{
    assert_true(from.len < size);
    if (from.len)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

#define COPY(field, from) world_copy(seen->field, sizeof(seen->field), (from))

static inline void world_read_client(struct seen *seen, struct slice bytes)
{
    union {
        struct msg_refused refused;
        struct msg_group_accepted accepted;
        struct msg_done done;
        struct msg_rollout_state state;
        struct msg_stream_head head;
        struct msg_status status;
    } in;
    struct refusal no;
    assert_true(message_peek(bytes, &seen->message, &no));
    assert_true(message_decode(seen->message, bytes, &in, &no));
    switch (seen->message) {
    case MSG_refused:
        seen->tag = in.refused.tag;
        seen->retry_ms = in.refused.has_retry_after_ms ? in.refused.retry_after_ms : 0;
        COPY(reason, in.refused.reason);
        COPY(field, in.refused.field);
        COPY(text, in.refused.text);
        break;
    case MSG_group_accepted:
        seen->tag = in.accepted.tag;
        seen->samples = in.accepted.samples;
        seen->known = in.accepted.known;
        COPY(group, in.accepted.group);
        COPY(text, in.accepted.warning);
        break;
    case MSG_done:
        seen->tag = in.done.tag;
        seen->count = in.done.count;
        break;
    case MSG_rollout_state:
        seen->attempt = in.state.attempt;
        COPY(state, in.state.state);
        COPY(stage, in.state.stage);
        COPY(worker, in.state.worker);
        COPY(rollout, in.state.rollout);
        break;
    case MSG_stream_head:
        seen->tag = in.head.tag;
        seen->first = in.head.first;
        seen->head = in.head.head;
        seen->pending = in.head.pending;
        COPY(stream, in.head.stream);
        break;
    default: assert_int_equal(seen->message, MSG_status);
    }
}

static inline void world_read_lane(struct seen *seen, struct slice bytes)
{
    union {
        struct msg_job_cancel cancel;
        struct msg_result_ack ack;
        struct msg_lane_hello hello;
        struct msg_lane_drain drain;
        struct msg_lane_engine engine;
        struct msg_lane_look look;
        struct msg_job_move move;
    } in;
    struct refusal no;
    assert_true(message_peek(bytes, &seen->message, &no));
    assert_true(message_decode(seen->message, bytes, &in, &no));
    if (seen->message == MSG_job_cancel) {
        COPY(job, in.cancel.job);
        seen->token = in.cancel.token;
    } else if (seen->message == MSG_result_ack) {
        COPY(job, in.ack.job);
        seen->token = in.ack.token;
    } else if (seen->message == MSG_lane_drain) {
        seen->count = in.drain.has_grace_s ? in.drain.grace_s : 0;
    } else if (seen->message == MSG_lane_engine) {
        COPY(engine, in.engine.url);
        COPY(version, in.engine.version);
        COPY(calls, in.engine.calls);
        seen->token = in.engine.state;
        seen->count = in.engine.number;
        seen->ms = in.engine.resume_ms;
    } else if (seen->message == MSG_job_move) {
        COPY(job, in.move.job);
        COPY(engine, in.move.engine);
        seen->token = in.move.token;
    } else if (seen->message == MSG_lane_look) {
        COPY(engine, in.look.url);
    } else {
        assert_int_equal(seen->message, MSG_lane_hello);
        seen->count = in.hello.epoch;
    }
}

static inline void world_read_effect(struct seen *seen, const struct effect *effect)
{
    *seen = (struct seen){.kind = effect->kind, .message = MESSAGE_COUNT, .tag = effect->tag,
                          .seq = effect->seq, .limit = effect->limit, .token = effect->token,
                          .priority = effect->priority, .attempt = effect->attempt, .ms = effect->ms,
                          .samples = effect->samples, .present = effect->present,
                          .end = effect->end};
    COPY(client, effect->client);
    COPY(worker, effect->worker);
    COPY(endpoint, effect->endpoint);
    COPY(job, effect->job);
    COPY(group, effect->group);
    COPY(rollout, effect->rollout);
    COPY(stream, effect->stream);
    COPY(engine, effect->engine);
    COPY(detail, effect->detail);
    COPY(owner, effect->owner);
    COPY(record, effect->record);
    COPY(trouble_job, effect->trouble.job);
    COPY(history, effect->trouble.history);
    seen->trouble = effect->trouble;
    seen->row_runs_max = effect->row.runs_max;
    seen->row_draining = effect->row.draining;
    seen->paused_until_ms = effect->row.paused_until_ms;
    COPY(version, effect->row.version);
    COPY(calls, effect->row.calls);
    seen->lease_ms = effect->lease_ms;
    seen->accepted_ms = effect->accepted_ms;
    COPY(end_detail, effect->end.detail);
    COPY(end_engine, effect->end.engine);
    COPY(end_layer, effect->end.init_layer);
    COPY(end_rollout, effect->end.rollout);
    if (effect->kind == LANE_SEND)
        world_read_lane(seen, effect->bytes);
    else if (effect->bytes.len)
        world_read_client(seen, effect->bytes);
}

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

/* What the shell does at the end of a cycle. */
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

static inline void world_say(struct world *world, const char *client, enum message_id id,
                             const void *in)
{
    bool submits = id == MSG_group_submit;
    struct caller caller = {TEXT(client), TEXT(world->name), !world->name || world->is_admin};
    uint64_t hash = 0;
    for (size_t i = 0; submits && i < ((const struct msg_group_submit *)in)->task.len; i++)
        hash = hash * 31 + ((const struct msg_group_submit *)in)->task.data[i];
    core_handle(world->core, world->now_ms, WALL_MS, &caller, id, in,
                submits ? &world->task : NULL, hash);
    world_settle(world);
}

static inline void world_submit_task(struct world *world, const char *group, const char *stream,
                                     uint64_t samples, const char *task)
{
    struct msg_group_submit in = {.tag = 7, .group = TEXT(group), .stream = TEXT(stream),
                                  .samples = samples, .task = TEXT(task),
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
    bool draining;
    uint64_t epoch;     /* 0: this one */
    uint64_t progress;  /* 0: grows by itself */
    uint64_t engines;   /* the newest lane.engine it has taken */
    const char *sandbox, *sandbox_why, *kernel;
    uint64_t sandboxes;
};

static inline void world_beat_with(struct world *world, const char *worker, const char *stage,
                                   struct beat beat, ...)
{
    struct buffer packed = {0};
    uint32_t count = 0;
    va_list holds;
    va_start(holds, beat);
    for (const char *job; (job = va_arg(holds, const char *)); count++)
        assert_true(jobs_append(&packed, TEXT(job), va_arg(holds, uint64_t)));
    va_end(holds);
    struct msg_worker_beat in = {
        .worker = TEXT(worker), .stage = TEXT(stage), .slots = beat.slots ? beat.slots : 1,
        .lane = TEXT(beat.lane ? beat.lane : "tcp://10.0.0.7:20417"), .host = TEXT("node7"),
        .progress = beat.progress ? beat.progress : 1000 + ++world->progress,
        .draining = beat.draining, .epoch = beat.epoch ? beat.epoch : world->epoch,
        .engines = beat.engines, .has_engines = beat.engines > 0,
        .sandbox = TEXT(beat.sandbox), .sandbox_why = TEXT(beat.sandbox_why), .kernel = TEXT(beat.kernel),
        .has_sandbox = beat.sandbox, .has_sandbox_why = beat.sandbox_why, .has_kernel = beat.kernel,
        .sandboxes = beat.sandboxes, .has_sandboxes = beat.sandbox,
        .jobs = {buffer_peek(&packed), count}};
    world_say(world, "", MSG_worker_beat, &in);
    buffer_finish(&packed);
}

/* world_beat(world, "w1", "run", slots, "run:g/0", token, ..., NULL) */
#define world_beat(world, worker, stage, slots_, ...)                                              \
    world_beat_with(world, worker, stage, (struct beat){.slots = (slots_)}, __VA_ARGS__)

static inline void world_result_with(struct world *world, const char *worker, const char *job,
                                     uint64_t token, const char *outcome,
                                     struct msg_job_result in)
{
    in.worker = TEXT(worker);
    in.job = TEXT(job);
    in.token = token;
    in.outcome = TEXT(outcome);
    if (!in.ms)
        in.ms = 35;
    world_say(world, "", MSG_job_result, &in);
}

static inline void world_result(struct world *world, const char *worker, const char *job,
                                uint64_t token, const char *outcome)
{
    world_result_with(world, worker, job, token, outcome, (struct msg_job_result){0});
}

static inline void world_reward(struct world *world, const char *worker, const char *job,
                                uint64_t token, double reward)
{
    world_result_with(world, worker, job, token, "ok",
                      (struct msg_job_result){.reward = reward, .has_reward = true});
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

static inline void world_cancel(struct world *world, const char *rollout, const char *group,
                                const char *stream)
{
    struct msg_rollout_cancel in = {.tag = 11, .rollout = TEXT(rollout), .has_rollout = rollout,
                                    .group = TEXT(group), .has_group = group,
                                    .stream = TEXT(stream), .has_stream = stream};
    world_say(world, "trainer", MSG_rollout_cancel, &in);
}

static inline void world_engine(struct world *world, enum message_id id, const char *url)
{
    struct msg_engine_add in = {.tag = 12, .url = TEXT(url)};
    struct msg_engine_remove out = {.tag = 13, .url = TEXT(url)};
    world_say(world, "operator", id, id == MSG_engine_add ? (void *)&in : (void *)&out);
}

/* What a worker says was at fault. */
static inline void world_blame(struct world *world, const char *worker, const char *job,
                               const char *outcome, const char *fault, const char *detail)
{
    world_result_with(world, worker, job, token_of(world, job), outcome,
                      (struct msg_job_result){.fault = TEXT(fault), .has_fault = fault,
                                              .detail = TEXT(detail), .has_detail = true});
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
static inline const struct seen *seen_nth(const struct world *world, enum effect_kind kind,
                                          size_t n)
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

static inline bool was_told(const struct world *world, const char *worker, enum message_id id,
                            const char *job)
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
        fail_msg("answered %s, not %s: %s", message_get(seen->message)->wire,
                 message_get(id)->wire, seen->text);
    return seen;
}

static inline const struct seen *expect_refused(const struct world *world,
                                                enum refusal_reason reason)
{
    const struct seen *seen = expect_answer(world, MSG_refused);
    assert_string_equal(seen->reason, refusal_wire(reason));
    return seen;
}

/* The one rollout that ended just now. */
static inline const struct seen *expect_end(const struct world *world, const char *rollout,
                                            enum outcome outcome)
{
    const struct seen *end = expect(world, PERSIST_END);
    assert_int_equal(seen_count(world, PERSIST_END), 1);
    assert_int_equal(seen_count(world, PUBLISH_TRAJECTORY), 1);
    assert_string_equal(end->end_rollout, rollout);
    assert_string_equal(outcome_wire(end->end.outcome), outcome_wire(outcome));
    assert_int_equal(end->end.seq, expect(world, PUBLISH_TRAJECTORY)->seq);
    return end;
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
