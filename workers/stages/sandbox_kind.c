/*
 * The kind "sandbox": init writes the task's files and runs its set-up, run lets the agent work on
 * what init left, eval scores what the agent left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/agent.h"
#include "workers/agents/kinds/agents.h"
#include "workers/engines/engines.h"
#include "workers/runtime/fiber.h"
#include "workers/handlers/roles/agent.h"
#include "workers/jobs/job_engine.h"
#include "workers/live/live.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/agents_evaluation.h"
#include "workers/stages/build/build.h"
#include "workers/stages/collect.h"
#include "workers/stages/fresh_evaluation.h"
#include "workers/stages/kinds.h"
#include "workers/stages/run_end.h"
#include "workers/stages/run_work.h"
#include "workers/stages/sandbox/hidden_paths.h"
#include "workers/stages/sandbox/stage_confirm.h"
#include "workers/stages/sandbox/stage_files.h"
#include "workers/stages/sandbox/stage_sandbox.h"
#include "workers/stages/setup.h"
#include "workers/stages/steps/steps.h"
#include "workers/stages/teacher.h"

/* ---- init --------------------------------------------------------------------------------- */

/* What its build came to is noted in the layer of what it stands on. */
static bool note_build(struct job *job, struct stage_sandbox *stage, const struct parents *built)
{
    struct fail fail = {0};
    AUTO_BUFFER text = {0};
    if (!job->task->build.dockerfile)
        return true;
    parents_write(built, &text);
    int code = text.failed ? fail_memory(&fail)
                           : sandbox_write_file(stage->sandbox, PARENTS_FILE, text.data ? text.data : (uint8_t *)"",
                                                text.len, 0444, &fail);
    if (code < 0)
        stage_end_failed(job, stage, BLAME_TASK, code, &fail);
    return code == 0;
}

static void init_in_sandbox(struct job *job, struct stage_sandbox *stage, const struct parents *built)
{
    struct fail fail = {0};
    char limits[96];
    const bool is_empty = job->task->file_count == 0 && job->task->setup_count == 0 && !job->task->build.dockerfile;
    int code = stage_sandbox_add_parents(stage, job, built, &fail);
    if (code == 0)
        code = is_empty ? stage_sandbox_find_image(stage, job, &fail) : stage_sandbox_open(stage, job, &fail);
    job_begin_work(job);
    if (code < 0)
        stage_end_failed(job, stage, BLAME_TASK, code, &fail);
    else if (is_empty ||
             (setup_run(job, stage) && note_build(job, stage, built) && run_end_pack(job, stage, BLAME_TASK, false))) {
        stage_describe_breaches(stage, limits, sizeof(limits));
        job_set_outcome(job, OUTCOME_OK, "%zu files, %zu set-up commands%s", job->task->file_count,
                        job->task->setup_count, limits);
    }
    stage_confirm(job, stage);
    stage_sandbox_close(stage);
}

static void sandbox_init(struct job *job)
{
    struct stage_sandbox stage = {.part = STAGE_SETUPS};
    AUTO_FREE struct parents *built = calloc(1, sizeof(*built));
    if (!built)
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    else if (!job->task->build.dockerfile || build_run(job, task_base_of_agent(job->task), built))
        init_in_sandbox(job, &stage, built);
}

/* ---- run ---------------------------------------------------------------------------------- */

static bool wants_kernels(const struct task *task)
{
    for (size_t i = 0; i < task->tool_count; i++)
        if (strcmp(task->tools[i], "ipython") == 0)
            return true;
    return false;
}

static int open_run(struct stage_sandbox *stage, const struct job *job, struct fail *fail)
{
    stage->kernels = wants_kernels(job->task);
    stage->has_model = strcmp(job->task->agent_kind, agent_harness.name) == 0;
    int code = stage_sandbox_add_init(stage, job, fail);
    if (code == 0)
        code = hidden_paths_add(stage, job, fail);
    return code < 0 ? code : stage_sandbox_open(stage, job, fail);
}

/* For an agent that began without one. */
static int open_later(struct agent_run *run, struct fail *fail)
{
    struct stage_sandbox *stage = run->open_arg;
    int code = open_run(stage, run->job, fail);
    run->sandbox = stage->sandbox;
    run->open_fault = stage->fault;
    run->has_open_failed = code < 0;
    return code;
}

static int put_files(struct agent_run *run, const struct task_file *files, size_t count, struct fail *fail)
{
    return stage_give_files(run->job, run->open_arg, files, count, fail);
}

static int take_listener(struct agent_run *run)
{
    const struct stage_sandbox *stage = run->open_arg;
    return sandbox_copy_listener(stage->sandbox, stage->forward_count);
}

static bool open_run_sandbox(struct job *job, struct stage_sandbox *stage)
{
    struct fail fail = {0};
    int code = open_run(stage, job, &fail);
    if (code < 0)
        stage_end_failed(job, stage, BLAME_AGENT, code, &fail);
    return code == 0;
}

static bool has_worked(enum outcome outcome) { return outcome == OUTCOME_OK || outcome == OUTCOME_AGENT; }

/* What the agent left is to be scored. */
static bool is_collected(const struct job *job, enum outcome outcome)
{
    return job->task->collect.count > 0 && has_worked(outcome) && !fiber_is_cancelled();
}

static void run_once(struct job *job, struct agent_run *run, const struct agent *agent, struct stage_sandbox *stage)
{
    const enum outcome outcome = run_work(run, agent);
    const bool is_late = fiber_is_late();
    job->result.answer = take_ptr(&run->answer);
    if (is_collected(job, outcome) && !collect_run(job, stage, run))
        return;
    run_end(job, stage, run, outcome, is_late);
    if ((task_is_evaluated_there(job->task) || task_is_posted(job->task)) && has_worked(job->result.outcome))
        agents_evaluation(job, stage);
}

static void run_agent(struct job *job, const struct agent *agent, struct engine *engine, struct stage_sandbox *stage)
{
    struct record record;
    record_init(&record);
    struct agent_run run = {.task = job->task,
                            .sample = job->start.sample,
                            .engine = engine,
                            .migration = &job->migration,
                            .sandbox = stage->sandbox,
                            .search = job->context->search,
                            .sessions = job->context->sessions,
                            .session = &job->session,
                            .open_sandbox = open_later,
                            .open_arg = stage,
                            .put_files = put_files,
                            .take_listener = take_listener,
                            .job = job,
                            .record = &record};
    live_show(&record);
    job_begin_work(job);
    if (job->task->step_count > 0)
        steps_run(job, &run, agent, stage);
    else
        run_once(job, &run, agent, stage);
    live_hide();
    record_finish(&record);
}

static void sandbox_run(struct job *job)
{
    struct stage_sandbox stage = {0};
    struct engine *engine = NULL;
    const struct agent *built_in = agent_find(job->task->agent_kind), *agent = built_in ? built_in : &agent_handler;
    const bool needs_engine = built_in ? agent->needs_engine : task_needs_engine(job->task);
    if ((!needs_engine || (engine = job_find_engine(job, "the agent"))) &&
        (!agent->needs_sandbox || open_run_sandbox(job, &stage)))
        run_agent(job, agent, engine, &stage);
    stage_confirm(job, &stage);
    stage_sandbox_close(&stage);
}

/* ---- eval --------------------------------------------------------------------------------- */

static void sandbox_eval(struct job *job)
{
    fresh_evaluation(job);
    if (job->result.outcome == OUTCOME_OK && task_needs_teacher(job->task))
        teacher_score(job);
}

const struct task_kind kind_sandbox = {
    .name = "sandbox",
    .doc = "An agent works in a sandbox; an evaluator scores what it left.",
    .init = sandbox_init,
    .run = sandbox_run,
    .eval = sandbox_eval,
};
