/*
 * sampler_world.h - a world with a sampler on the stream "train", and workers with room for all.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_SAMPLER_SAMPLER_WORLD_H
#define SLUICE_TESTS_BROKER_CORE_SAMPLER_SAMPLER_WORLD_H

#include "tests/broker/core/core_world.h"

enum { SLOTS = 256 };

static inline void sampler_beat(struct world *world)
{
    world_beat(world, "i1", "init", SLOTS, NULL);
    world_beat(world, "r1", "run", SLOTS, NULL);
    world_beat(world, "e1", "eval", SLOTS, NULL);
}

/* A rule of so many groups a batch; the rest is as `rule` has it. */
static inline void sampler_open(struct world *world, uint64_t groups, struct msg_sampler_open rule)
{
    rule.tag = 22;
    rule.stream = TEXT("train");
    if (!rule.trainer.len)
        rule.trainer = TEXT("t1");
    rule.groups = groups;
    world_say(world, "trainer", MSG_sampler_open, &rule);
}

static inline struct world *sampler_world(uint64_t groups, struct msg_sampler_open rule)
{
    struct world *world = world_open();
    world->settings.infra_budget = 1;
    core_destroy(&world->core);
    world_start(world);
    sampler_beat(world);
    sampler_open(world, groups, rule);
    expect_answer(world, MSG_sampler_state);
    return world;
}

static inline void sampler_next_by(struct world *world, const char *trainer, uint64_t batch, uint64_t wait_ms)
{
    struct msg_sampler_next in = {.tag = 24,
                                  .stream = TEXT("train"),
                                  .trainer = TEXT(trainer),
                                  .batch = batch,
                                  .has_wait_ms = wait_ms > 0,
                                  .wait_ms = wait_ms};
    world_say(world, "trainer", MSG_sampler_next, &in);
}

static inline void sampler_next(struct world *world, uint64_t batch, uint64_t wait_ms)
{
    sampler_next_by(world, "t1", batch, wait_ms);
}

/* What it says of itself, until the next call. */
static inline const char *sampler_state(struct world *world)
{
    struct msg_sampler_get in = {.tag = 23, .stream = TEXT("train")};
    world_say(world, "trainer", MSG_sampler_get, &in);
    return expect_answer(world, MSG_sampler_state)->json;
}

#define expect_says(text, words)                                                                                       \
    do {                                                                                                               \
        const char *text_ = (text);                                                                                    \
        if (!strstr(text_, words))                                                                                     \
            fail_msg("'%s' does not say '%s'", text_, words);                                                          \
    } while (0)

static inline void submit_many(struct world *world, unsigned from, unsigned to, uint64_t samples)
{
    for (unsigned i = from; i <= to; i++) {
        char group[32];
        snprintf(group, sizeof(group), "g%u", i);
        world_submit(world, group, samples);
    }
}

static inline bool was_handed(const struct world *world, const char *job)
{
    for (size_t i = 0; i < world->handed_count; i++)
        if (!strcmp(world->handed[i].job, job))
            return true;
    return false;
}

static inline bool is_released(const struct world *world, const char *group)
{
    char job[64];
    snprintf(job, sizeof(job), "init:%s", group);
    return was_handed(world, job);
}

static inline void end_job(struct world *world, const char *worker, const char *stage, const char *group, unsigned k,
                           struct msg_job_result in)
{
    char job[64];
    snprintf(job, sizeof(job), k == UINT32_MAX ? "%s:%s" : "%s:%s/%u", stage, group, k);
    world_result_with(world, worker, job, token_of(world, job), "ok", in);
}

/* Through init and the run of each, sampled by `version`. */
static inline void run_group(struct world *world, const char *group, unsigned samples, uint64_t version)
{
    end_job(world, "i1", "init", group, UINT32_MAX, (struct msg_job_result){0});
    for (unsigned k = 0; k < samples; k++)
        end_job(world, "r1", "run", group, k,
                (struct msg_job_result){.sampled_tokens = 10,
                                        .has_sampled_tokens = true,
                                        .oldest_version = version,
                                        .has_oldest_version = version > 0});
}

static inline void reward(struct world *world, const char *group, unsigned k, double reward)
{
    end_job(world, "e1", "eval", group, k, (struct msg_job_result){.reward = reward, .has_reward = true});
}

/* A whole group of two. */
static inline void finish_group(struct world *world, const char *group, double first, double second)
{
    run_group(world, group, 2, 0);
    reward(world, group, 0, first);
    reward(world, group, 1, second);
}

static inline void set_version(struct world *world, const char *version)
{
    struct msg_policy_set in = {.tag = 19, .version = TEXT(version)};
    world_say(world, "trainer", MSG_policy_set, &in);
}

#endif
