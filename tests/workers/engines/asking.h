/*
 * asking.h - one engine_generate in a fiber of its own, what became of it, and what a scripted engine
 * must have answered.
 */
#ifndef SLUICE_TESTS_WORKERS_ENGINES_ASKING_H
#define SLUICE_TESTS_WORKERS_ENGINES_ASKING_H

#include "tests/workers/engines/engine_world.h"
#include "workers/engines/engine.h"
#include "workers/engines/generate.h"
#include "common/loop/loop_now.h"

static struct world world;
static const struct task_sampling asked_with; /* each file's own */

struct asking {
    const char *user;
    uint64_t max_tokens; /* 0: 64 */
    int64_t deadline_ms; /* from now; 0: none */
    int expected;
    const char *words; /* part of the sentence */
    int code;
    struct fail fail;
    struct generation generation;
    struct fiber *fiber;
};

static inline void ask(void *arg)
{
    struct asking *asking = arg;
    struct tokens prompt = prompt_of(asking->user);
    asking->fiber = fiber_current();
    if (asking->deadline_ms)
        fiber_push_deadline(loop_now_ms() + asking->deadline_ms);
    asking->code = engine_generate(world_engine(fiber_world), &prompt, &asked_with,
                                   asking->max_tokens ? asking->max_tokens : 64, 1, &asking->generation, &asking->fail);
    tokens_finish(&prompt);
}

static inline void assert_answered(const struct asking *asking)
{
    if (asking->code != asking->expected)
        fail_msg("%s: %d (%s), not %d", asking->user, asking->code, asking->fail.text, asking->expected);
    if (asking->words && !strstr(asking->fail.text, asking->words))
        fail_msg("%s: '%s' does not say '%s'", asking->user, asking->fail.text, asking->words);
}

/* At the same time. */
static inline void ask_all(struct asking *askings, size_t count)
{
    world_run(&world, ask, askings, sizeof(*askings), count);
    for (size_t i = 0; i < count; i++)
        assert_answered(&askings[i]);
}

static inline void ask_one(struct asking *asking) { ask_all(asking, 1); }

/* The scripted engine's own formula. */
static inline float scripted_logprob(size_t position, uint32_t id)
{
    return (float)(-(double)((position * 7919 + (size_t)id * 104729) % 9973 + 1) / 1000);
}

/* An answer that said this and then ended, but for the last byte of the prompt from the cache. */
static inline void assert_sampled(const struct asking *asking, const char *said, const char *version)
{
    const struct generation *got = &asking->generation;
    struct tokens prompt = prompt_of(asking->user);
    assert_string_equal(got->text, said);
    assert_string_equal(got->finish, "stop");
    assert_string_equal(got->version, version);
    assert_int_equal(got->sampled.count, strlen(said) + 1);
    assert_int_equal(got->sampled.ids[strlen(said)], BYTE_END);
    for (size_t i = 0; i < got->sampled.count; i++) {
        assert_true(i == strlen(said) || got->sampled.ids[i] == (uint8_t)said[i]);
        assert_true(got->logprobs[i] == scripted_logprob(prompt.count + i, got->sampled.ids[i]));
    }
    assert_int_equal(got->prompt_tokens, prompt.count);
    assert_int_equal(got->cached_tokens, prompt.count - 1);
    tokens_finish(&prompt);
}

/* How often a route was asked so far. */
static inline size_t requests_to(const char *path)
{
    json_t *log = world_log(&world);
    size_t count = log_count(log, path);
    json_decref(log);
    return count;
}

#endif
