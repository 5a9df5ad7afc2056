/*
 * The kind "sandbox": init writes the task's files and runs its set-up, run lets the agent work on
 * what init left, eval scores what the agent left.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/agents/agent.h"
#include "workers/agents/kinds/agents.h"
#include "workers/engines/engines.h"
#include "workers/runtime/fiber.h"
#include "workers/evaluators/evaluators.h"
#include "workers/handlers/roles/agent.h"
#include "workers/handlers/roles/evaluator.h"
#include "workers/handlers/roles/tool.h"
#include "workers/jobs/job_engine.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/agents_evaluation.h"
#include "workers/stages/build/build.h"
#include "workers/stages/collect.h"
#include "workers/stages/kinds.h"
#include "workers/stages/sandbox/hidden_paths.h"
#include "workers/stages/sandbox/stage_confirm.h"
#include "workers/stages/sandbox/stage_files.h"
#include "workers/stages/sandbox/stage_sandbox.h"
#include "schemas/messages/message_max.h"

enum { OUTPUT_MAX = 16384, TAIL_MAX = 1200 };

/* ---- init --------------------------------------------------------------------------------- */

/* These return whether to go on; if not, the job has ended. */

static bool run_setup(struct job *job, struct stage_sandbox *stage, const char *command)
{
    struct fail fail = {0};
    struct sandbox_output output = {0};
    char how[160];
    int code = sandbox_command(stage->sandbox, command, stage_command_ms(job->task->limits.init_s), OUTPUT_MAX, &output,
                               &fail);
    bool good = code == 0 && output.status == 0 && !output.timed_out;
    if (code < 0 || sandbox_breach(stage->sandbox))
        stage_end_failed(job, stage, BLAME_TASK, code, &fail);
    else if (!good) {
        stage_describe_end(stage, &output, how, sizeof(how));
        job_set_outcome(job, OUTCOME_TASK, "the set-up command %.300s %s: %s", command, how,
                        stage_output_tail(&output, TAIL_MAX));
    }
    free(output.text);
    return good && !sandbox_breach(stage->sandbox);
}

static bool set_up(struct job *job, struct stage_sandbox *stage)
{
    const struct task *task = job->task;
    if (!stage_put_files(job, stage, task->files, task->file_count))
        return false;
    for (size_t i = 0; i < task->setup_count; i++)
        if (!run_setup(job, stage, task->setup[i]))
            return false;
    return true;
}

/*
 * Packs what `who` wrote, in a time of its own. What is packed late must not be scored without its
 * files.
 */
static bool pack(struct job *job, struct stage_sandbox *stage, enum blame_who who)
{
    struct fail fail = {0};
    fiber_lift_deadline(stage_closing_by(stage));
    int code = layer_pack(&job->context->layers, stage->sandbox, &job->result.layer, &fail);
    fiber_pop_deadline();
    stage->fault = job->result.layer.fault;
    if (code == -ENAMETOOLONG || code == -EFBIG)
        job_set_outcome(job, blame_get(who, BLAME_TREE).outcome, "the files cannot be packed: %s", fail.text);
    else if (code == -ETIMEDOUT && !sandbox_breach(stage->sandbox))
        job_set_fault(job, OUTCOME_INFRA, stage->fault, "the files were not packed within %d s", JOB_PACK_MS / 1000);
    else if (code < 0)
        stage_end_failed(job, stage, who, code, &fail);
    if (code < 0 && job->result.outcome == OUTCOME_AGENT)
        strcpy(job->result.layer.digest, LAYER_UNKNOWN); /* or what was there before would be scored */
    return code == 0;
}

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
    else if (is_empty || (set_up(job, stage) && note_build(job, stage, built) && pack(job, stage, BLAME_TASK))) {
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
    else if (!job->task->build.dockerfile || build_run(job, built))
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

static bool open_run_sandbox(struct job *job, struct stage_sandbox *stage)
{
    struct fail fail = {0};
    int code = open_run(stage, job, &fail);
    if (code < 0)
        stage_end_failed(job, stage, BLAME_AGENT, code, &fail);
    return code == 0;
}

/* What it was sampled with, which is the same in all traces: else it is not to be trained on. */
static void keep_identity(struct job *job, const struct record *record)
{
    struct job_result *result = &job->result;
    for (size_t i = 0; i < record->trace_count; i++) {
        const struct record_trace *trace = &record->traces[i];
        if (i == 0) {
            memcpy(result->tokenizer_digest, trace->tokenizer_digest, sizeof(result->tokenizer_digest));
            memcpy(result->template_digest, trace->template_digest, sizeof(result->template_digest));
        } else if ((result->outcome == OUTCOME_OK || result->outcome == OUTCOME_AGENT) &&
                   (strcmp(result->tokenizer_digest, trace->tokenizer_digest) != 0 ||
                    strcmp(result->template_digest, trace->template_digest) != 0)) {
            job_set_fault(job, OUTCOME_INFRA, FAULT_ENGINE,
                          "the engine's tokenizer or chat template was another one from trace %zu on", i + 1);
            return;
        }
    }
}

/* Of the agent that wrote it: how it ended, and how long it went on. */
static void keep_end(struct job *job, const struct agent_run *run, const char *end)
{
    struct record *record = run->record;
    struct job_result *result = &job->result;
    const char *finish = "";
    for (size_t i = 0; i < record->trace_count; i++)
        for (size_t k = 0; k < record->traces[i].turn_count; k++)
            if (strcmp(record->traces[i].turns[k].role, "assistant") == 0) {
                result->sampled_tokens += record->traces[i].turns[k].length;
                finish = record->traces[i].turns[k].finish;
            }
    snprintf(record->end, sizeof(record->end), "%s", end);
    record->truncated = strcmp(finish, "length") == 0 || strcmp(end, "context") == 0;
    record->attempt = (uint32_t)job->start.attempt;
    result->truncated = record->truncated;
}

static void keep_record(struct job *job, const struct record *record)
{
    struct refusal no = {0};
    const bool has_breach = record->sandbox && record->sandbox->breach_count > 0;
    if (record->trace_count == 0 && record->message_count == 0 && !has_breach && !record->noted)
        return;
    keep_identity(job, record);
    if (record_encode(record, &job->result.record, &no))
        return;
    buffer_clear(&job->result.record);
    job_set_outcome(job, OUTCOME_INFRA, "the record cannot be written: %s: %s", no.field, no.text);
}

/* Its words, behind a mark where its last turns were further from the first than the task lets them. */
static void say_end(struct job *job, const struct agent_run *run, struct blame blame, const char *words)
{
    const bool has_worked = blame.outcome == OUTCOME_OK || blame.outcome == OUTCOME_AGENT;
    if (has_worked && staleness_is_marked(&run->age, job->task))
        job_set_fault(job, blame.outcome, blame.fault, STALE_MARK "a turn was %llu versions behind; %s",
                      (unsigned long long)run->age.most, words);
    else
        job_set_fault(job, blame.outcome, blame.fault, "%s", words);
}

static void say_breach(struct job *job, const struct agent_run *run, const char *breach)
{
    char words[64];
    strcpy(job->result.layer.digest, LAYER_UNKNOWN);
    snprintf(words, sizeof(words), "%s limit", breach);
    say_end(job, run, blame_get(BLAME_AGENT, BLAME_LIMIT), words);
}

static void finish_run(struct job *job, struct stage_sandbox *stage, const struct agent_run *run, enum outcome outcome,
                       bool is_late)
{
    const bool is_stale = outcome == OUTCOME_CANCELLED && run->fault == FAULT_STALE;
    const char *breach = stage->sandbox ? sandbox_breach(stage->sandbox) : NULL;
    if ((outcome == OUTCOME_CANCELLED && !is_stale) || fiber_is_cancelled()) {
        job_set_outcome(job, OUTCOME_CANCELLED, "cancelled");
        return;
    }
    if (breach && run->fault != FAULT_STALE)
        say_breach(job, run, breach);
    else if (outcome == OUTCOME_TASK || outcome == OUTCOME_INFRA || is_stale || !stage->sandbox ||
             task_is_evaluated_there(job->task) || pack(job, stage, BLAME_AGENT))
        say_end(job, run, (struct blame){.outcome = outcome, .fault = run->fault}, run->detail);
    keep_end(job, run, breach ? "limit" : run->end);
    if (stage_record_usage(stage, is_late, run->record) && stage_record_touched(stage, run->record))
        keep_record(job, run->record);
    else
        job_set_outcome(job, OUTCOME_INFRA, "the record cannot be written: out of memory");
}

/* What the agent left is to be scored. */
static bool is_collected(const struct job *job, enum outcome outcome)
{
    return job->task->collect_count > 0 && (outcome == OUTCOME_OK || outcome == OUTCOME_AGENT) && !fiber_is_cancelled();
}

static void run_agent(struct job *job, const struct agent *agent, struct engine *engine, struct stage_sandbox *stage)
{
    struct record record;
    struct handler_tools tools;
    record_init(&record);
    handler_tools_init(&tools, job);
    struct agent_run run = {.task = job->task,
                            .sample = job->start.sample,
                            .engine = engine,
                            .migration = &job->migration,
                            .sandbox = stage->sandbox,
                            .search = job->context->search,
                            .tools = &tools.source,
                            .open_sandbox = open_later,
                            .open_arg = stage,
                            .put_files = put_files,
                            .job = job,
                            .record = &record};
    tools.run = &run;
    job_begin_work(job);
    enum outcome outcome = agent->run(&run);
    handler_tools_finish(&tools);
    job->result.answer = take_ptr(&run.answer);
    const bool is_late = fiber_is_late();
    const bool is_whole = !is_collected(job, outcome) || collect_run(job, stage, &run);
    if (is_whole)
        finish_run(job, stage, &run, outcome, is_late);
    record_finish(&record);
    if (is_whole && task_is_evaluated_there(job->task) &&
        (job->result.outcome == OUTCOME_OK || job->result.outcome == OUTCOME_AGENT))
        agents_evaluation(job, stage);
}

static void sandbox_run(struct job *job)
{
    struct stage_sandbox stage = {0};
    struct engine *engine = NULL;
    const struct agent *built_in = agent_find(job->task->agent_kind), *agent = built_in ? built_in : &agent_handler;
    const bool needs_engine = built_in ? agent->needs_engine : task_needs_engine(job->task);
    if (job->task->step_count > 0) {
        job_set_outcome(job, OUTCOME_TASK, "this worker does no tasks with steps");
        return;
    }
    if ((!needs_engine || (engine = job_find_engine(job, "the agent"))) &&
        (!agent->needs_sandbox || open_run_sandbox(job, &stage)))
        run_agent(job, agent, engine, &stage);
    stage_confirm(job, &stage);
    stage_sandbox_close(&stage);
}

/* ---- eval --------------------------------------------------------------------------------- */

static void sandbox_eval(struct job *job)
{
    const struct evaluator *evaluator = evaluator_find(job->task->eval_kind);
    (evaluator ? evaluator : &evaluator_handler)->run(job);
}

const struct task_kind kind_sandbox = {
    .name = "sandbox",
    .doc = "An agent works in a sandbox; an evaluator scores what it left.",
    .init = sandbox_init,
    .run = sandbox_run,
    .eval = sandbox_eval,
};
