/*
 * fuzz_workers.h - what a fuzzed input says: the names it picks from, numbers small and wide, and
 * everything that workers do: beat honestly or not, answer what they hold or made up, and die.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_FUZZ_WORKERS_H
#define SLUICE_TESTS_BROKER_CORE_FUZZ_WORKERS_H

#include "tests/broker/core/fuzz_world.h"

#define TEXT(literal)                                                                                                  \
    {                                                                                                                  \
        (const uint8_t *)(literal), sizeof(literal) - 1                                                                \
    }

/* 96 bytes, the most that messages.def takes. */
#define X8 "xxxxxxxx"
#define LONGEST_GROUP X8 X8 X8 X8 X8 X8 X8 X8 X8 X8 X8 X8

static const char *const groups[] = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "\xe6\x97\xa5", "a b", LONGEST_GROUP};
static const char *const streams[STREAMS] = {"s0", "s1", "s2", "no/name"};
static const char *const engines[ENGINES] = {"http://e0", "http://e1", "http://e2"};
static const char *const stages[] = {"init", "run", "eval", "sleep"};
static const char *const outcomes[] = {"ok", "ok", "agent", "task", "infra", "cancelled", "fine"};
static const char *const faults[] = {"engine", "image", "store", "node", "moon"};
static const struct core_task tasks[TASKS] = {
    {TEXT("plain"), TEXT("i0"), false, {5000, 8000, 5000}, 604800000, 100},
    {TEXT("other"), TEXT("i1"), false, {1, 1, 1}, 3600000, 1},
    {TEXT("engine"), TEXT("i0"), true, {5000, 8000, 5000}, 604800000, 1000},
    {TEXT("heavy"), TEXT("i2"), true, {86400000, 86400000, 86400000}, 604800000, 1048576},
    {TEXT("brief"), TEXT("i1"), false, {5000, 8000, 5000}, 1000, 50},
    {TEXT("instant"), TEXT("i2"), true, {1000, 1000, 1000}, 1, 2},
};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))
#define PICK(world, array) (array)[roll(world, COUNT_OF(array))]

static inline unsigned roll(struct world *world, size_t sides)
{
    if (world->input.len == 0)
        return 0;
    world->input.len--;
    return *world->input.data++ % (unsigned)sides;
}

/* Small mostly, and now and then whatever eight bytes hold. */
static inline uint64_t number(struct world *world)
{
    uint64_t wide = 0;
    unsigned low = roll(world, 256);
    if (low < 248)
        return low % 16;
    for (int i = 0; i < 8; i++)
        wide = wide << 8 | roll(world, 256);
    return wide;
}

static const struct caller *who(struct world *world) { return &PICK(world, callers); }
static inline struct slice pick_group(struct world *world) { return slice_from_str(PICK(world, groups)); }
static inline struct slice pick_stream(struct world *world) { return slice_from_str(PICK(world, streams)); }

static inline struct slice name_rollout(struct world *world, char name[128])
{
    struct slice group = pick_group(world);
    snprintf(name, 128, "%.*s/%u", SLICE_ARG(group), roll(world, SAMPLES + 1));
    return slice_from_str(name);
}

/* ---- workers ------------------------------------------------------------------------------- */

static inline void hire(struct world *world, struct fuzz_worker *worker, unsigned stage, unsigned slots)
{
    *worker = (struct fuzz_worker){.stage = (enum stage)stage, .slots = slots};
    snprintf(worker->id, sizeof(worker->id), "w%llu", (unsigned long long)++world->names);
}

static inline void beat(struct world *world, struct fuzz_worker *worker, struct msg_worker_beat *in, bool forges)
{
    AUTO_BUFFER packed = {0};
    char job[160], lane[32];
    unsigned skipped = forges ? roll(world, 4) : HELD_MAX;
    for (size_t i = 0; i < worker->count; i++)
        if (i != skipped && ++in->jobs.count)
            must(jobs_append(&packed, slice_from_str(worker->held[i].job), worker->held[i].token));
    for (unsigned more = forges ? roll(world, 4) : 0; more > 0; more--, in->jobs.count++) {
        const char *stage = PICK(world, stages);
        struct slice group = pick_group(world);
        int len = snprintf(job, sizeof(job), "%s:%.*s", stage, SLICE_ARG(group));
        if (roll(world, 4))
            snprintf(job + len, sizeof(job) - (size_t)len, "/%u", roll(world, SAMPLES + 1));
        must(jobs_append(&packed, slice_from_str(job), number(world)));
    }
    snprintf(lane, sizeof(lane), "tcp://h:%u", worker->number);
    in->worker = slice_from_str(worker->id);
    in->lane = slice_from_str(lane);
    in->host = slice_from_str("h");
    in->jobs.packed = buffer_peek(&packed);
    say(world, &from_worker, MSG_worker_beat, in);
}

static inline void honest_beat(struct world *world, struct fuzz_worker *worker)
{
    struct msg_worker_beat in = {.stage = slice_from_str(stages[worker->stage]),
                                 .slots = worker->slots,
                                 .progress = ++worker->progress,
                                 .draining = worker->draining,
                                 .epoch = worker->epoch,
                                 .engines = worker->heard,
                                 .has_engines = true};
    beat(world, worker, &in, false);
}

static inline void odd_beat(struct world *world)
{
    struct fuzz_worker *worker = &PICK(world, world->workers);
    unsigned how = roll(world, 256);
    if (how & 1) /* another stage would be another worker, to the core and to us */
        worker->slots = 1 + roll(world, 5);
    worker->number += (how & 2) != 0;
    worker->progress += (how & 4) != 0;
    worker->draining ^= (how & 24) == 24;
    struct msg_worker_beat in = {.stage = slice_from_str(stages[how >= 250 ? 3 : worker->stage]),
                                 .slots = worker->slots,
                                 .progress = worker->progress,
                                 .draining = worker->draining,
                                 .epoch = how & 32 ? number(world) : worker->epoch,
                                 .engines = number(world),
                                 .has_engines = how & 128};
    beat(world, worker, &in, how & 64);
}

static inline void any_beat(struct world *world)
{
    struct fuzz_worker *worker = &PICK(world, world->workers);
    if (!worker->id[0])
        hire(world, worker, roll(world, STAGE_COUNT), 1 + roll(world, 4));
    honest_beat(world, worker);
}

/* That a rollout it has, or none, goes on on some engine, though nobody may have asked. */
static inline void any_migration(struct world *world)
{
    const struct fuzz_worker *worker = &PICK(world, world->workers);
    const struct held *held = worker->count ? &worker->held[roll(world, worker->count)] : NULL;
    struct msg_job_migrated in = {.worker = slice_from_str(worker->id),
                                  .job = slice_from_str(held ? held->job : "run:a/0"),
                                  .token = held ? held->token : number(world),
                                  .engine = slice_from_str(PICK(world, engines))};
    say(world, &from_worker, MSG_job_migrated, &in);
}

/* What a worker, of whatever stage, says of an engine. */
static inline void any_load(struct world *world)
{
    if (roll(world, 4) == 0) {
        any_migration(world);
        return;
    }
    struct msg_engine_load in = {.worker = slice_from_str(PICK(world, world->workers).id),
                                 .url = slice_from_str(PICK(world, engines)),
                                 .runs = number(world),
                                 .tokens = number(world),
                                 .calls = number(world),
                                 .has_cache_permille = roll(world, 2),
                                 .cache_permille = roll(world, 4) * 300,
                                 .has_answers = roll(world, 2)};
    in.answers = in.has_answers && roll(world, 2);
    in.has_error = in.has_answers && !in.answers;
    in.error = in.has_error ? slice_from_str("no answer") : slice_of(NULL, 0);
    say(world, &from_worker, MSG_engine_load, &in);
}

/* An evaluator's reward may count from here on. */
static inline void note_score(struct world *world, const struct msg_job_result *in)
{
    struct row_group *group;
    if (in->has_reward && slice_is(in->outcome, "ok") && in->job.len > 5 && memcmp(in->job.data, "eval:", 5) == 0) {
        struct slice rollout = slice_of(in->job.data + 5, in->job.len - 5);
        if (rollout.len > 2 && (group = rows_group(&world->rows, slice_of(rollout.data, rollout.len - 2))) &&
            (unsigned)(rollout.data[rollout.len - 1] - '0') < group->samples)
            rows_rollout(&world->rows, rollout, NULL)->is_scored = true;
    }
}

static inline void answer(struct world *world, struct slice worker, struct slice job, uint64_t token,
                          const char *outcome)
{
    bool is_eval = job.len > 5 && memcmp(job.data, "eval:", 5) == 0, is_bad = roll(world, 4) == 3;
    struct msg_job_result in = {.worker = worker,
                                .job = job,
                                .token = token,
                                .outcome = slice_from_str(outcome),
                                .ms = number(world),
                                .reward = 1,
                                .has_reward = is_eval != is_bad,
                                .detail = slice_from_str("why"),
                                .has_detail = roll(world, 2),
                                .record = slice_from_str("record"),
                                .has_record = roll(world, 2),
                                .fault = slice_from_str(PICK(world, faults)),
                                .has_fault = roll(world, 3) == 1};
    note_score(world, &in);
    say(world, &from_worker, MSG_job_result, &in);
}

static inline void honest_answer(struct world *world)
{
    struct fuzz_worker *worker = &PICK(world, world->workers);
    if (worker->count == 0)
        return;
    struct held held = worker->held[roll(world, worker->count)];
    answer(world, slice_from_str(worker->id), slice_from_str(held.job), held.token, PICK(world, outcomes));
}

/* Of a job that somebody made up, or of an old dispatch. */
static inline void odd_answer(struct world *world)
{
    char job[160];
    const char *stage = PICK(world, stages);
    struct slice group = pick_group(world);
    snprintf(job, sizeof(job), roll(world, 4) ? "%s:%.*s/%u" : "%s:%.*s", stage, SLICE_ARG(group),
             roll(world, SAMPLES));
    uint64_t token = roll(world, 2) ? number(world) : world->last_token - roll(world, 8);
    answer(world, slice_from_str(PICK(world, world->workers).id), slice_from_str(job), token, PICK(world, outcomes));
}

static inline void hurt(struct world *world)
{
    struct fuzz_worker *worker = &PICK(world, world->workers);
    struct slice id = slice_from_str(worker->id);
    if (roll(world, 2))
        core_lane_broke(world->core, world->now_ms, id);
    else if (roll(world, 2))
        core_lane_waits(world->core, world->now_ms, id, slice_from_str(roll(world, 2) ? "why" : ""));
    else
        hire(world, worker, roll(world, STAGE_COUNT), 1 + roll(world, 4));
}
#endif
