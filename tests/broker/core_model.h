/*
 * core_model.h - the world around the core, simulated: workers that die, hang, lose
 * messages and answer late or twice; a ledger that remembers what was persisted and
 * objects to what must not be; a broker that crashes before or after its commit.
 * Everything follows from the seed.
 */
#ifndef SLUICE_TESTS_CORE_MODEL_H
#define SLUICE_TESTS_CORE_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "broker/core.h"

enum { GROUPS_MAX = 400, SAMPLES = 4, CREW_MAX = 24, HELD_MAX = 256, WIRE_MAX = 4096, STREAMS = 2 };

struct held {
    char job[64];
    uint64_t token;
    int64_t done_ms, resend_ms;
    const char *outcome; /* NULL while at work */
};

struct sim_worker {
    char id[32];
    const char *stage;
    unsigned slots;
    bool alive, lane, draining, hung;
    int64_t beat_ms;
    uint64_t epoch, progress;
    struct held held[HELD_MAX];
    size_t count;
};

/* A result under way to the broker. */
struct letter {
    int64_t due_ms;
    char worker[32], job[64];
    uint64_t token;
    const char *outcome;
};

struct row_rollout {
    bool run_done, ended;
    enum outcome run_outcome;
    uint64_t seq;
};

struct row_group {
    char id[32], stream[16];
    uint64_t samples;
    bool accepted, init_done, needs_engine;
    struct row_rollout rollouts[SAMPLES];
};

struct model {
    struct core *core;
    struct core_settings settings;
    uint64_t epoch, names;
    uint32_t random;
    int64_t now_ms;
    bool calm; /* nothing is lost any more */
    struct row_group groups[GROUPS_MAX];
    size_t group_count;
    uint64_t first[STREAMS], head[STREAMS];
    bool engines[3];
    struct sim_worker crew[CREW_MAX];
    struct letter wire[WIRE_MAX];
    size_t wire_count;
    uint64_t ends, restarts, deaths;
};

static inline unsigned roll(struct model *model, unsigned sides)
{
    model->random = model->random * 1664525 + 1013904223;
    return (model->random >> 8) % sides;
}

/* True once in so many times, never in the calm. */
static inline bool chance(struct model *model, unsigned one_in)
{
    return roll(model, one_in) == 0 && !model->calm;
}

/* ---- the ledger -------------------------------------------------------------------- */

static inline struct row_group *find_group(struct model *model, struct slice id)
{
    for (size_t i = 0; i < model->group_count; i++)
        if (slice_is(id, model->groups[i].id))
            return &model->groups[i];
    return NULL;
}

static inline struct row_rollout *find_rollout(struct model *model, struct slice name)
{
    struct slice id = {name.data, name.len - 2}; /* "<group>/<one digit>" */
    struct row_group *group = find_group(model, id);
    assert_non_null(group);
    return &group->rollouts[name.data[name.len - 1] - '0'];
}

static inline void put_text(char *to, size_t size, struct slice from)
{
    assert_true(from.len < size);
    memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

static inline unsigned stream_number(struct slice name) { return name.data[1] - '0'; }

static inline void persist_group(struct model *model, const struct effect *effect)
{
    assert_null(find_group(model, effect->group));
    assert_true(model->group_count < GROUPS_MAX);
    struct row_group *group = &model->groups[model->group_count++];
    put_text(group->id, sizeof(group->id), effect->group);
    put_text(group->stream, sizeof(group->stream), effect->stream);
    group->samples = effect->samples;
    group->needs_engine = slice_is(effect->task, "engine");
}

static inline void persist_end(struct model *model, const struct effect *effect)
{
    const struct core_end *end = &effect->end;
    struct row_rollout *rollout = find_rollout(model, end->rollout);
    unsigned stream = stream_number(end->stream);
    assert_false(rollout->ended);
    assert_int_equal(end->seq, model->head[stream] + 1);
    assert_true(!end->has_reward || rollout->run_done);
    assert_true(!end->trainable || end->outcome == OUTCOME_OK || end->outcome == OUTCOME_AGENT);
    rollout->ended = true;
    rollout->seq = ++model->head[stream];
    model->ends++;
}

static inline void persist(struct model *model, const struct effect *effect)
{
    struct row_rollout *rollout;
    switch (effect->kind) {
    case PERSIST_GROUP: persist_group(model, effect); break;
    case PERSIST_INIT:
        assert_false(find_group(model, effect->group)->init_done);
        find_group(model, effect->group)->init_done = true;
        break;
    case PERSIST_RUN:
        rollout = find_rollout(model, effect->rollout);
        assert_false(rollout->run_done || rollout->ended);
        rollout->run_done = true;
        rollout->run_outcome = effect->outcome;
        break;
    case PERSIST_END: persist_end(model, effect); break;
    case PERSIST_ACK: model->first[stream_number(effect->stream)] = effect->seq + 1; break;
    case PERSIST_ENGINE:
        model->engines[effect->engine.data[effect->engine.len - 1] - '0'] = effect->present;
        break;
    default: break;
    }
}

static inline void restore_group(struct model *model, struct row_group *group)
{
    struct core_group_row row = {
        .group = slice_from_str(group->id), .stream = slice_from_str(group->stream),
        .samples = group->samples, .task_hash = 1,
        .task = {.id = slice_from_str("t"), .needs_engine = group->needs_engine,
                 .limit_ms = {5000, 8000, 5000}},
        .init_done = group->init_done};
    assert_true(core_restore_group(model->core, &row));
    for (unsigned k = 0; k < group->samples; k++) {
        const struct row_rollout *rollout = &group->rollouts[k];
        if (rollout->ended && rollout->seq < model->first[stream_number(row.stream)])
            continue;
        struct core_rollout_row told = {
            .rollout = row.group, .group = row.group, .sample = k, .ended = rollout->ended,
            .run_done = rollout->run_done, .run_outcome = rollout->run_outcome,
            .stream = row.stream, .seq = rollout->seq};
        assert_true(core_restore_rollout(model->core, &told));
    }
}

static inline void start_broker(struct model *model)
{
    core_destroy(&model->core);
    model->core = core_create(&model->settings, ++model->epoch, model->now_ms);
    for (unsigned s = 0; s < STREAMS; s++) {
        char name[16], url[32];
        snprintf(name, sizeof(name), "s%u", s);
        assert_true(core_restore_stream(model->core, slice_from_str(name), slice_of(NULL, 0), model->first[s],
                                        model->head[s]));
        snprintf(url, sizeof(url), "http://%u", s);
        if (model->engines[s])
            assert_true(core_restore_engine(model->core, slice_from_str(url)));
    }
    for (size_t i = 0; i < model->group_count; i++)
        restore_group(model, &model->groups[i]);
    for (unsigned i = 0; i < CREW_MAX; i++)
        model->crew[i].lane = false;
}

/* ---- workers ----------------------------------------------------------------------- */

static inline struct sim_worker *find_worker(struct model *model, struct slice id)
{
    for (unsigned i = 0; i < CREW_MAX; i++)
        if (model->crew[i].alive && slice_is(id, model->crew[i].id))
            return &model->crew[i];
    return NULL;
}

static inline void drop_held(struct sim_worker *worker, struct slice job, uint64_t token)
{
    for (size_t i = 0; i < worker->count;)
        if (slice_is(job, worker->held[i].job) && (!token || token == worker->held[i].token))
            worker->held[i] = worker->held[--worker->count];
        else
            i++;
}

static inline const char *pick_outcome(struct model *model)
{
    static const char *const bad[] = {"agent", "task", "infra", "infra", "cancelled"};
    return chance(model, 4) ? bad[roll(model, 5)] : "ok";
}

static inline void send_result(struct model *model, struct sim_worker *worker, struct held *held)
{
    held->resend_ms = model->now_ms + 2000;
    for (int copies = chance(model, 10) ? 0 : chance(model, 10) ? 2 : 1; copies > 0; copies--) {
        if (model->wire_count == WIRE_MAX)
            return;
        struct letter *letter = &model->wire[model->wire_count++];
        letter->due_ms = model->now_ms + (chance(model, 8) ? roll(model, 15000) : 0);
        memcpy(letter->worker, worker->id, sizeof(worker->id));
        memcpy(letter->job, held->job, sizeof(held->job));
        letter->token = held->token;
        letter->outcome = held->outcome;
    }
}

static inline void take_job(struct model *model, struct sim_worker *worker,
                            const struct effect *effect)
{
    struct row_group *group = find_group(model, effect->group);
    assert_true(slice_is(slice_from_str(stage_wire(effect->stage)), worker->stage));
    assert_true(effect->stage == STAGE_INIT || group->init_done);
    if (effect->stage != STAGE_INIT) {
        assert_false(find_rollout(model, effect->rollout)->ended);
        assert_int_equal(find_rollout(model, effect->rollout)->run_done,
                         effect->stage == STAGE_EVAL);
        assert_true(effect->stage != STAGE_RUN || !group->needs_engine || effect->engine.len);
    }
    if (worker->count == HELD_MAX)
        return;
    struct held *held = &worker->held[worker->count++];
    *held = (struct held){.token = effect->token,
                          .done_ms = model->now_ms + roll(model, 3000) +
                                     (chance(model, 50) ? 100000 : 0)};
    put_text(held->job, sizeof(held->job), effect->job);
}

static inline void hear(struct model *model, struct sim_worker *worker, struct slice bytes)
{
    union {
        struct msg_job_cancel cancel;
        struct msg_result_ack ack;
        struct msg_lane_hello hello;
    } in;
    enum message_id id;
    assert_true(message_peek(bytes, &id, NULL));
    assert_true(message_decode(id, bytes, &in, NULL));
    if (id == MSG_job_cancel) {
        drop_held(worker, in.cancel.job, in.cancel.token);
    } else if (id == MSG_result_ack) {
        drop_held(worker, in.ack.job, in.ack.token);
    } else if (in.hello.epoch != worker->epoch) {
        worker->epoch = in.hello.epoch;
        for (size_t i = 0; i < worker->count; i++)
            worker->held[i].resend_ms = model->now_ms;
    }
}

static inline void deliver(struct model *model, const struct effect *effect)
{
    struct sim_worker *worker = find_worker(model, effect->worker);
    bool is_lost = chance(model, 25);
    if (effect->kind == SEND_CLIENT) {
        enum message_id id;
        struct msg_group_accepted in;
        assert_true(message_peek(effect->bytes, &id, NULL));
        if (id != MSG_group_accepted)
            return;
        assert_true(message_decode(id, effect->bytes, &in, NULL));
        assert_non_null(find_group(model, in.group)); /* accepted means on disk */
        find_group(model, in.group)->accepted = true;
    } else if (!worker || is_lost) {
        return;
    } else if (effect->kind == LANE_OPEN || effect->kind == LANE_CLOSE) {
        worker->lane = effect->kind == LANE_OPEN;
    } else if (effect->kind == LANE_JOB && worker->lane) {
        take_job(model, worker, effect);
    } else if (effect->kind == LANE_SEND && worker->lane) {
        hear(model, worker, effect->bytes);
    }
}

static inline void send_beat(struct model *model, struct sim_worker *worker)
{
    char lane[64];
    struct buffer packed = {0};
    worker->beat_ms = model->now_ms + 1000;
    worker->progress += !worker->hung;
    if (chance(model, 10))
        return;
    for (size_t i = 0; i < worker->count; i++)
        assert_true(
            jobs_append(&packed, slice_from_str(worker->held[i].job), worker->held[i].token));
    /* What opens a lane may be lost here as nothing is in earnest: a new address mends it. */
    snprintf(lane, sizeof(lane), "tcp://h:%llu",
             (unsigned long long)(worker->lane ? 1 : worker->progress + 2));
    struct msg_worker_beat in = {
        .worker = slice_from_str(worker->id), .stage = slice_from_str(worker->stage),
        .slots = worker->slots, .lane = slice_from_str(lane), .host = slice_from_str("h"),
        .progress = worker->progress, .draining = worker->draining, .epoch = worker->epoch,
        .jobs = {buffer_peek(&packed), (uint32_t)worker->count}};
    core_handle(model->core, model->now_ms, 1, &(struct caller){.route = slice_of(NULL, 0), .is_admin = true}, MSG_worker_beat, &in, NULL, 0);
    buffer_finish(&packed);
}

static inline void work(struct model *model, struct sim_worker *worker)
{
    if (!worker->alive)
        return;
    for (size_t i = 0; i < worker->count && !worker->hung; i++) {
        struct held *held = &worker->held[i];
        if (!held->outcome && model->now_ms >= held->done_ms)
            held->outcome = pick_outcome(model);
        if (held->outcome && model->now_ms >= held->resend_ms)
            send_result(model, worker, held);
    }
    if (model->now_ms >= worker->beat_ms)
        send_beat(model, worker);
}

#endif
