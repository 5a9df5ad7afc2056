/*
 * fuzz_world.h - the world around a core that is fuzzed: who speaks, what is on disk, what lanes
 * are open and what workers hold. Every effect is checked as it is carried out:
 *   what is sent to a client names only what is on disk, and only what the client may see;
 *   each request is answered once; what is sent to a worker is a message, on an open lane;
 *   a job is handed out only with its stage's inputs on disk, with a token that grows.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_FUZZ_WORLD_H
#define SLUICE_TESTS_BROKER_CORE_FUZZ_WORLD_H

#include "common/base/cleanup.h"
#include "tests/broker/ledger/fuzz_ledger.h"

enum { WORKERS_MAX = 6, HELD_MAX = 64, CYCLE_MAX = 64 };

struct held {
    char job[160];
    uint64_t token;
};

struct fuzz_worker {
    char id[16];
    enum stage stage;
    unsigned slots, number;
    uint64_t progress, epoch, heard;
    bool lane, draining;
    struct held held[HELD_MAX];
    size_t count;
};

struct world {
    struct slice input; /* what is left of it */
    struct core *core;
    struct core_settings settings;
    struct ledger_rows rows;
    int64_t now_ms, latest_ms, wall_ms, due_ms; /* latest_ms: now_ms may be told to go back */
    uint64_t last_token, names;
    int64_t unanswered; /* requests since the core's start */
    struct fuzz_worker workers[WORKERS_MAX];
    struct buffer cycle[CYCLE_MAX]; /* the messages whose effects are not carried out yet */
    size_t cycle_count;
};

/* The route says who it is, so that what is sent there can be judged. */
static const struct caller callers[] = {
    {{(const uint8_t *)"root", 4}, {NULL, 0}, true},
    {{(const uint8_t *)"ann", 3}, {(const uint8_t *)"ann", 3}, false},
    {{(const uint8_t *)"bob", 3}, {(const uint8_t *)"bob", 3}, false},
};
static const struct caller from_worker = {.is_admin = true};

/* With FUZZ_TRACE=1 in the environment an input tells its story. */
#define TELL(...) (getenv("FUZZ_TRACE") ? (void)fprintf(stderr, __VA_ARGS__) : (void)0)

/* ---- carrying out ---------------------------------------------------------------------- */

static inline void check_may_see(const struct world *world, struct slice client, unsigned stream)
{
    const char *owner = world->rows.streams[stream].owner;
    must(slice_is(client, "root") || !owner[0] || slice_is(client, owner));
}

static inline enum message_id read_message(struct slice bytes, void *ret, size_t size)
{
    enum message_id id;
    struct refusal no = {0};
    must(message_peek(bytes, &id, &no) && message_get(id)->size <= size);
    must(message_decode(id, bytes, ret, &no) && message_get(id)->sender == SENDER_BROKER);
    return id;
}

static inline void to_client(struct world *world, const struct effect *effect)
{
    union any_message in;
    enum message_id id = read_message(effect->bytes, &in, sizeof(in));
    if (id == MSG_group_accepted) {
        const struct row_group *row = rows_group(&world->rows, in.group_accepted.group);
        must(row && row->samples == in.group_accepted.samples);
        check_may_see(world, effect->client, row->stream);
    } else if (id == MSG_rollout_state) {
        rows_rollout(&world->rows, in.rollout_state.rollout, NULL); /* it may have ended since, in this cycle */
    } else if (id == MSG_sampler_batch) {
        unsigned s = index_of(world->rows.stream_names, STREAMS, in.sampler_batch.stream);
        check_may_see(world, effect->client, s);
        check_batch(&world->rows.samplers[s], &in.sampler_batch);
    }
    must(effect->client.len > 0);
    world->unanswered--;
}

static inline void to_reader(struct world *world, const struct effect *effect)
{
    unsigned s = index_of(world->rows.stream_names, STREAMS, effect->stream);
    const struct row_stream *row = &world->rows.streams[s];
    struct msg_stream_head head;
    if (effect->kind == SEND_RANGE)
        must(read_message(effect->bytes, &head, sizeof(head)) == MSG_stream_head && head.first <= head.head + 1);
    else if (effect->kind == SEND_TRAJECTORY)
        must(effect->seq >= 1 && effect->seq <= row->head);
    if (effect->kind == SEND_TRAJECTORY || effect->limit > 0)
        check_may_see(world, effect->client, s);
    world->unanswered--;
}

static inline void to_feed(struct world *world, const struct effect *effect)
{
    unsigned s = index_of(world->rows.stream_names, STREAMS, effect->stream);
    struct msg_stream_head head;
    if (effect->kind == PUBLISH_TRAJECTORY) {
        must(effect->seq >= 1 && effect->seq <= world->rows.streams[s].head);
        return;
    }
    must(read_message(effect->bytes, &head, sizeof(head)) == MSG_stream_head);
    must(head.head <= world->rows.streams[s].head && head.epoch == world->rows.epoch);
}

static inline struct fuzz_worker *find_worker(struct world *world, struct slice id)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        if (slice_is(id, world->workers[i].id))
            return &world->workers[i];
    return NULL; /* it has died since */
}

static inline void let_go(struct fuzz_worker *worker, struct slice job, uint64_t token)
{
    for (size_t i = 0; i < worker->count;)
        if (slice_is(job, worker->held[i].job) && (!token || token == worker->held[i].token))
            worker->held[i] = worker->held[--worker->count];
        else
            i++;
}

static inline void hear(struct fuzz_worker *worker, const struct effect *effect)
{
    union any_message in;
    switch (read_message(effect->bytes, &in, sizeof(in))) {
    case MSG_lane_hello: worker->epoch = in.lane_hello.epoch; break;
    case MSG_lane_engine:
        must(worker->stage != STAGE_INIT && in.lane_engine.has_calls == in.lane_engine.has_resume_ms);
        worker->heard = in.lane_engine.state;
        break;
    case MSG_engine_probe: must(worker->stage == STAGE_RUN); break;
    case MSG_lane_drain: worker->draining = true; break;
    case MSG_job_migrate: must(worker->stage == STAGE_RUN); break;
    case MSG_job_cancel: let_go(worker, in.job_cancel.job, in.job_cancel.token); break;
    case MSG_result_ack: let_go(worker, in.result_ack.job, in.result_ack.token); break;
    default: must(!"a message that no worker understands");
    }
}

static inline void take_job(struct world *world, struct fuzz_worker *worker, const struct effect *effect)
{
    struct row_group *group = rows_group(&world->rows, effect->group);
    must(group && effect->stage == worker->stage && effect->token > world->last_token);
    must(effect->attempt >= 1 && (effect->stage == STAGE_INIT) != group->init_done);
    world->last_token = effect->token;
    if (effect->stage != STAGE_INIT) {
        const struct row_rollout *row = rows_rollout(&world->rows, effect->rollout, NULL);
        must(!row->ended && row->run_done == (effect->stage == STAGE_EVAL));
        must(effect->stage != STAGE_RUN || !world->rows.tasks[group->task].needs_engine || effect->engine.len);
        must(effect->stage != STAGE_EVAL || !world->rows.tasks[group->task].judge.len || effect->engine.len);
    }
    if (worker->count == HELD_MAX)
        return;
    struct held *held = &worker->held[worker->count++];
    held->token = effect->token;
    put_text(held->job, sizeof(held->job), effect->job);
}

static inline void to_worker(struct world *world, const struct effect *effect)
{
    struct fuzz_worker *worker = find_worker(world, effect->worker);
    must(effect->worker.len > 0);
    if (!worker)
        return;
    if (effect->kind == LANE_OPEN) {
        must(!worker->lane && effect->endpoint.len);
        worker->lane = true;
        return;
    }
    must(worker->lane);
    if (effect->kind == LANE_CLOSE)
        worker->lane = false;
    else if (effect->kind == LANE_JOB)
        take_job(world, worker, effect);
    else
        hear(worker, effect);
}

static inline void carry_out(struct world *world, const struct effect *effect)
{
    if (effect->kind == HEALTH_CHANGED || effect->kind == LANE_REFUSED)
        return; /* for the log */
    if (effect->kind == PUBLISH_TRAJECTORY) {
        to_feed(world, effect);
        return;
    }
    TELL("  effect %d to %.*s%.*s %.*s%.*s%.*s\n", effect->kind, SLICE_ARG(effect->client), SLICE_ARG(effect->worker),
         SLICE_ARG(effect->stream), SLICE_ARG(effect->job), SLICE_ARG(effect->bytes));
    switch (effect->kind) {
    case SEND_EVENTS: break; /* nothing hangs on them */
    case SEND_CLIENT: to_client(world, effect); break;
    case SEND_TRAJECTORY:
    case SEND_RANGE: to_reader(world, effect); break;
    case PUBLISH_HEAD: to_feed(world, effect); break;
    case LANE_OPEN:
    case LANE_SEND:
    case LANE_JOB:
    case LANE_CLOSE: to_worker(world, effect); break;
    case SEND_LIST:
        must(effect->list.from <= effect->list.to + 1);
        check_may_see(world, effect->list.client, index_of(world->rows.stream_names, STREAMS, effect->stream));
        world->unanswered--;
        break;
    case BACK_UP:
        must(name_is_valid(effect->detail) && slice_is(effect->client, "root"));
        world->unanswered--;
        break;
    default: must(!"an effect that the I/O side does not know");
    }
}

/* ---- cycles ---------------------------------------------------------------------------- */

static inline void check_core(const struct world *world)
{
    const char *broken = core_check(world->core);
    if (broken)
        fprintf(stderr, "core_check: %s\n", broken);
    must(!broken && !core_failed(world->core));
}

static inline void forget_cycle(struct world *world)
{
    core_effects_clear(world->core);
    while (world->cycle_count)
        buffer_finish(&world->cycle[--world->cycle_count]);
}

/* All lanes are gone and what was in them; workers keep what they hold. Clocks may start anew. */
static inline void restart(struct world *world)
{
    if (world->now_ms < world->latest_ms) /* it only seemed to have gone back; or the machine booted */
        world->now_ms = world->input.len % 4 ? world->latest_ms : 1;
    world->latest_ms = world->now_ms;
    TELL("restart\n");
    forget_cycle(world);
    core_destroy(&world->core);
    world->core = rows_restore(&world->rows, &world->settings, world->now_ms, world->wall_ms);
    world->unanswered = 0;
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        world->workers[i].lane = false;
    world->due_ms = core_tick(world->core, world->now_ms, world->wall_ms);
}

/* The end of a cycle as the I/O side does it: dispatch, commit, send. The broker may die in between.
 */
enum crash { CRASH_NEVER, CRASH_BEFORE_COMMIT, CRASH_BEFORE_SEND };

static inline void end_cycle(struct world *world, enum crash crash)
{
    core_dispatch(world->core, world->now_ms);
    check_core(world);
    struct effects effects = core_effects(world->core);
    for (size_t i = 0; i < effects.count && crash != CRASH_BEFORE_COMMIT; i++)
        if (effects.items[i].kind <= PERSIST_EPOCH)
            rows_persist(&world->rows, &effects.items[i]);
    for (size_t i = 0; i < effects.count && crash == CRASH_NEVER; i++)
        if (effects.items[i].kind > PERSIST_EPOCH)
            carry_out(world, &effects.items[i]);
    if (crash == CRASH_NEVER)
        forget_cycle(world);
    else
        restart(world);
}

/* A message as it comes from the wire: false if its bytes would have been refused before the core.
 */
static inline bool say(struct world *world, const struct caller *caller, enum message_id id, const void *in)
{
    static uint8_t decoded[4096];
    struct refusal no = {0};
    must(message_get(id)->size <= sizeof(decoded));
    if (world->cycle_count == CYCLE_MAX)
        end_cycle(world, CRASH_NEVER);
    struct buffer *bytes = &world->cycle[world->cycle_count];
    *bytes = (struct buffer){0};
    if (!message_encode(id, in, bytes, &no)) {
        buffer_finish(bytes);
        return false;
    }
    world->cycle_count++;
    must(message_decode(id, buffer_peek(bytes), decoded, &no));
    const struct core_task *task = NULL;
    uint64_t hash = 0;
    if (id == MSG_group_submit) {
        const struct msg_group_submit *submit = (const void *)decoded;
        unsigned index = submit->task.data[1] - '0';
        task = &world->rows.tasks[index];
        hash = index_of(world->rows.stream_names, STREAMS, submit->stream) * 1000 + submit->samples * 100 + index;
    }
    TELL("%lld %lld %.*s: %.*s\n", (long long)world->now_ms, (long long)world->wall_ms, SLICE_ARG(caller->route),
         SLICE_ARG(buffer_peek(bytes)));
    world->unanswered += caller->route.len > 0;
    core_handle(world->core, world->now_ms, world->wall_ms, caller, id, decoded, task, hash);
    return true;
}

#endif
