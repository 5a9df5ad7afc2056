/*
 * handler_world.h - evaluations by a real process of a handler (scripted_handler.c), in real sandboxes where it asks
 * for one: stages as a worker runs them, with the handlers of a worker beside them.
 */
#ifndef SLUICE_TESTS_WORKERS_HANDLERS_HANDLER_WORLD_H
#define SLUICE_TESTS_WORKERS_HANDLERS_HANDLER_WORLD_H

#include "tests/workers/stages/kinds_world.h"

#include "workers/handlers/handlers.h"
#include "common/loop/loop_now.h"

enum { WORLD_WAIT_MS = 20000 };

static char handler_texts[4][512];
static const char *handler_list[4];

/* Handlers by what --handler says, "%s" in it the scripted handler's path; they are destroyed with the world. */
static inline void start_handlers(enum stage stage, size_t processes, const char *const *texts, size_t count)
{
    struct fail fail = {0};
    for (size_t i = 0; i < count; i++) {
        snprintf(handler_texts[i], sizeof(handler_texts[i]), texts[i], SCRIPTED_HANDLER);
        handler_list[i] = handler_texts[i];
    }
    const struct handlers_plan plan = {
        .stage = stage, .texts = handler_list, .count = count, .processes = processes, .scratch = directory};
    context.handlers = handlers_create(loop, &plan, &fail);
    if (!context.handlers)
        fail_msg("no handlers: %s", fail.text);
}

static inline void start_handler(const char *text) { start_handlers(STAGE_EVAL, 1, &text, 1); }

/* Until it is so; a bound beyond which the test fails. */
#define wait_until(condition)                                                                                          \
    for (int64_t end_ = loop_now_ms() + WORLD_WAIT_MS; !(condition);) {                                                \
        await_sleep(5);                                                                                                \
        if (loop_now_ms() > end_)                                                                                      \
            fail_msg("never: " #condition);                                                                            \
    }

static inline void wait_for_offers(void) { wait_until(handlers_offers(context.handlers)[0]); }

static inline int tear_down_handlers(void **state)
{
    handlers_destroy(&context.handlers);
    return tear_down_kinds(state);
}

/* What an evaluator of a handler is given beside its name. */
struct to_judge {
    const char *answer;      /* NULL: none */
    const char *more;        /* members of the task, "\"limits\":{}"; NULL: none */
    struct slice record;     /* of the run */
    const struct layer *run; /* what the agent left; NULL: nothing */
    const char *digest;      /* in place of a layer's; NULL */
};

/* The eval stage of a task whose evaluator has this name. */
static inline struct job evaluate(const char *name, struct to_judge given)
{
    static char json[8192];
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"},\"eval\":{\"kind\":\"%s\"}%s%s}", name,
             given.more ? "," : "", given.more ? given.more : "");
    struct job job = make_job(json);
    job.start.task = slice_from_str(json);
    job.start.group = slice_from_str("g");
    job.start.sample = 3;
    job.start.answer = slice_from_str(given.answer);
    job.start.has_answer = given.answer != NULL;
    job.start.record = given.record;
    give_layer(&job.start.run_layer_digest, &job.start.run_layer, given.run);
    if (given.digest)
        job.start.run_layer_digest = slice_from_str(given.digest);
    job_begin(&job, STAGE_EVAL);
    task_kind_find(job.task->kind)->eval(&job);
    fiber_pop_deadline();
    return job;
}

static inline void end_evaluation(struct job *job)
{
    verdict_finish(&job->result.verdict);
    end_job(job);
}

/* Evaluates and compares outcome, fault, and a part of the detail. */
static inline void expect_evaluation(const char *name, struct to_judge given, enum outcome outcome, enum fault fault,
                                     const char *words)
{
    struct job job = evaluate(name, given);
    expect(&job, outcome, words);
    if (job.result.fault != fault)
        fail_msg("%s: fault \"%s\", not \"%s\"", name, fault_wire(job.result.fault), fault_wire(fault));
    end_evaluation(&job);
}

static inline void expect_score(const char *name, struct to_judge given, double reward, const char *words)
{
    struct job job = evaluate(name, given);
    expect(&job, OUTCOME_OK, words);
    assert_true(job.result.verdict.has_reward);
    if (job.result.verdict.reward != reward)
        fail_msg("%s: reward %g, not %g (%s)", name, job.result.verdict.reward, reward, job.result.detail);
    end_evaluation(&job);
}

#define HANDLER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_handlers)

#endif
