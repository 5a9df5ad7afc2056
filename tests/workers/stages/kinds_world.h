/*
 * kinds_world.h - stages of a task as a worker runs them, in real sandboxes with scripted agents:
 * in place of the program's own table, an agent does what its prompt says.
 */
#ifndef SLUICE_TESTS_WORKERS_STAGES_KINDS_WORLD_H
#define SLUICE_TESTS_WORKERS_STAGES_KINDS_WORLD_H

#include "tests/workers/sandbox/sandbox_fixture.h"

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/agents/agent.h"
#include "workers/agents/kinds/agents.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/command.h"
#include "workers/jobs/job.h"
#include "workers/jobs/result.h"
#include "workers/evaluators/evaluator.h"
#include "workers/files/dirtree.h"
#include "workers/stages/kinds.h"

static char store[128], cache[128];
static struct image_list offered; /* images below the test's directory */
static struct job_context context;

static int set_up_kinds(void **state)
{
    if (set_up(state) < 0)
        return -1;
    make_dir(store, sizeof(store), "store");
    make_dir(cache, sizeof(cache), "cache");
    struct fail fail = {0};
    if (image_list_add(&offered, directory, &fail) < 0)
        return -1;
    context = (struct job_context){
        .loop = loop, .spawner = spawner, .images = images_create(loop, cache, 0, &offered), .layers = {store, cache}};
    return 0;
}

static int tear_down_kinds(void **state)
{
    images_destroy(&context.images);
    image_list_finish(&offered);
    assert_int_equal(dirtree_remove(cache), 0);
    return tear_down(state);
}

/* ---- agents that need no model: their prompt is what they do
 * ------------------------------------- */

static char *agent_output;           /* of the last command an agent ran */
static struct fiber *agent_observer; /* woken when one starts; may be NULL */

static enum outcome run_scripted(struct agent_run *run)
{
    struct sandbox_output output = {0};
    struct fail fail = {0};
    fiber_wake(agent_observer);
    int code = sandbox_command(run->sandbox, run->task->messages[0].content, COMMAND_MS, 1 << 16, &output, &fail);
    if (code == 0) /* of a call that broke off an agent has nothing to record */
        record_say(run->record, "user", slice_from_str(run->task->messages[0].content), NULL, 0);
    free(agent_output);
    agent_output = output.text;
    run->answer = strdup("done");
    snprintf(run->detail, sizeof(run->detail), "%s", code < 0 ? fail.text : "ended by itself");
    return code == 0            ? OUTCOME_OK
           : code == -ETIMEDOUT ? OUTCOME_AGENT
           : code == -ECANCELED ? OUTCOME_CANCELLED
                                : OUTCOME_INFRA;
}

/* What the agent "bash" is; a test may set another. */
static enum outcome (*run_bash)(struct agent_run *run) = run_scripted;

static enum outcome run_as_told(struct agent_run *run) { return run_bash(run); }

static bool has_steps; /* of which each is set up before its agent: there is a sandbox then */

static enum outcome run_nothing(struct agent_run *run)
{
    assert_int_equal(run->sandbox != NULL, has_steps);
    snprintf(run->detail, sizeof(run->detail), "nothing done");
    return OUTCOME_OK;
}

static enum outcome run_never(struct agent_run *run)
{
    (void)run;
    fail_msg("there is no engine, so this agent cannot have been started");
    return OUTCOME_INFRA;
}

/* In place of the program's own table. */
const struct agent *agent_find(const char *name)
{
    static const struct agent agents[] = {
        {.name = "bash", .needs_sandbox = true, .run = run_as_told},
        {.name = "none", .run = run_nothing},
        {.name = "chat", .needs_engine = true, .run = run_never},
    };
    for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
        if (strcmp(agents[i].name, name) == 0)
            return &agents[i];
    return NULL;
}

/* ---- stages, as a worker runs them
 * ----------------------------------------------------------------- */

/* Of a task whose prompt is the scripted agent's command, where it names no agent. */
static inline struct job make_job(const char *json)
{
    struct refusal no = {0};
    struct job job = {.context = &context};
    AUTO_BUFFER whole = {0};
    assert_int_equal(json[0], '{');
    buffer_printf(&whole, "{%s%s", strstr(json, "\"agent\":") ? "" : "\"agent\":{\"kind\":\"bash\"},", json + 1);
    job.task = task_parse(buffer_peek(&whole), &no);
    buffer_append(&job.bytes, whole.data, whole.len);
    job.start.task = buffer_peek(&job.bytes);
    if (!job.task)
        fail_msg("%s: %s: %s", json, no.field, no.text);
    job_set_outcome(&job, OUTCOME_INFRA, "did not say how it ended");
    return job;
}

static inline void give_layer(struct slice *digest, struct slice *inlined, const struct layer *layer)
{
    if (!layer)
        return;
    *digest = slice_from_str(layer->digest);
    *inlined = buffer_peek(&layer->inlined);
}

static inline struct job run_stage(enum stage stage, const char *json, const struct layer *init,
                                   const struct layer *run, const char *answer)
{
    struct job job = make_job(json);
    const struct task_kind *kind = task_kind_find(job.task->kind);
    void (*const work[])(struct job *) = {kind->init, kind->run, kind->eval};
    give_layer(&job.start.init_layer_digest, &job.start.init_layer, init);
    give_layer(&job.start.run_layer_digest, &job.start.run_layer, run);
    job.start.answer = slice_from_str(answer);
    job_begin(&job, stage);
    work[stage](&job);
    fiber_pop_deadline();
    return job;
}

static inline void end_job(struct job *job)
{
    task_destroy(job->task);
    result_finish(&job->result);
    buffer_finish(&job->bytes);
}

static inline void expect(const struct job *job, enum outcome outcome, const char *words)
{
    if (job->result.outcome != outcome || !strstr(job->result.detail, words))
        fail_msg("%s (%s), not %s (%s)", outcome_wire(job->result.outcome), job->result.detail, outcome_wire(outcome),
                 words);
    assert_true(!job->result.verdict.has_reward || outcome == OUTCOME_OK);
}

/* Init of a task that must end so; it leaves no layer then. */
static inline void expect_init(const char *json, enum outcome outcome, const char *words)
{
    struct job job = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    expect(&job, outcome, words);
    assert_string_equal(job.result.layer.digest, "");
    end_job(&job);
}

/* The whole of a task; the eval job is for end_job. */
static inline struct job run_task(const char *json)
{
    struct job init = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    expect(&init, OUTCOME_OK, "");
    struct job run = run_stage(STAGE_RUN, json, &init.result.layer, NULL, NULL);
    if (run.result.outcome != OUTCOME_OK && run.result.outcome != OUTCOME_AGENT)
        fail_msg("run: %s", run.result.detail);
    struct job eval = run_stage(STAGE_EVAL, json, &init.result.layer, &run.result.layer, run.result.answer);
    end_job(&init);
    end_job(&run);
    return eval;
}

static inline void expect_reward(const char *json, double reward, const char *words)
{
    struct job eval = run_task(json);
    expect(&eval, OUTCOME_OK, words);
    assert_true(eval.result.verdict.has_reward);
    assert_true(eval.result.verdict.reward == reward);
    end_job(&eval);
}

static inline void expect_no_reward(const char *json, enum outcome outcome, const char *words)
{
    struct job eval = run_task(json);
    expect(&eval, outcome, words);
    assert_false(eval.result.verdict.has_reward);
    end_job(&eval);
}

#endif
