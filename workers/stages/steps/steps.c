#include "workers/stages/steps/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "schemas/task/steps.h"
#include "workers/agents/conversation/conversation.h"
#include "workers/agents/ends.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/sandbox.h"
#include "workers/stages/agents_evaluation.h"
#include "workers/stages/collect.h"
#include "workers/stages/run_end.h"
#include "workers/stages/run_work.h"
#include "workers/stages/setup.h"
#include "workers/stages/steps/step_apart.h"
#include "workers/stages/steps/steps_verdict.h"

struct steps {
    struct job *job;
    struct agent_run *run;
    const struct agent *agent;
    struct stage_sandbox *stage;
    const struct task *task; /* the whole */
    struct slice text;
    int64_t left_ms; /* of limits.run_s */
    bool is_late;    /* an agent's time was up, once */

    /* How the agent ended: in the first step in which it did not end by itself. */
    enum outcome outcome;
    char detail[sizeof(((struct agent_run *)0)->detail)], end[sizeof(((struct agent_run *)0)->end)];

    struct steps_verdict *verdicts;
    enum outcome evaluated; /* OK as long as each step was */
    char why[sizeof(((struct job_result *)0)->detail)];
    char stopped[256]; /* why a step is the last; "" */
    uint64_t evaluation_ms;
    bool in_agents; /* one was evaluated in the agent's sandbox */
};

/* One of them as it is worked on. */
struct step {
    const char *name;
    struct task_step_view view;
    struct buffer text;
    char reason[sizeof(((struct record_trace *)0)->reason)];
    bool is_first, is_last;
    bool is_apart; /* it is evaluated in a sandbox of its own */
};

/* ---- ends ------------------------------------------------------------------------------------------ */

/* The run is over, by what the job came to: it is not evaluated. */
static bool end_run(struct steps *steps)
{
    const struct job_result *result = &steps->job->result;
    steps->outcome = result->outcome;
    steps->run->fault = result->fault;
    snprintf(steps->detail, sizeof(steps->detail), "%.1000s", result->detail);
    steps->end[0] = '\0';
    return false;
}

/* There is no reward, by what the job came to; where nobody inside is to blame the run is over. */
static bool end_evaluation(struct steps *steps, const struct step *step)
{
    const struct job_result *result = &steps->job->result;
    if (result->outcome == OUTCOME_INFRA || result->outcome == OUTCOME_CANCELLED)
        return end_run(steps);
    steps->evaluated = result->outcome == OUTCOME_AGENT ? OUTCOME_AGENT : OUTCOME_TASK;
    snprintf(steps->why, sizeof(steps->why), "step %s: %.1900s", step->name, result->detail);
    return false;
}

/* ---- a step's set-up --------------------------------------------------------------------------------- */

static int open_sandbox(struct steps *steps, const struct step *step, struct fail *fail)
{
    if (!step->is_first)
        return stage_sandbox_hand_over(steps->stage, steps->job, STAGE_AGENTS, fail);
    int code = steps->stage->sandbox ? 0 : steps->run->open_sandbox(steps->run, fail);
    if (code == 0)
        sandbox_spare(steps->stage->sandbox, true);
    return code;
}

static bool prepare(struct steps *steps, const struct step *step)
{
    struct fail fail = {0};
    fiber_push_deadline(loop_now_ms() + (int64_t)steps->task->limits.init_s * 1000);
    int code = open_sandbox(steps, step, &fail);
    if (code < 0)
        stage_end_failed(steps->job, steps->stage, BLAME_NOBODY, code, &fail);
    const bool good = code == 0 && setup_run(steps->job, steps->stage);
    fiber_pop_deadline();
    return good || end_evaluation(steps, step);
}

/* ---- its agent ----------------------------------------------------------------------------------------- */

/* What steps before have left of the task's; false: nothing of one of them, and the agent has ended so. */
static bool share_limits(struct steps *steps, struct step *step, enum outcome *ret)
{
    struct agent_run *run = steps->run;
    struct task *view = &step->view.task;
    const uint64_t most = steps->task->limits.sampled_tokens;
    const struct record_sampled sampled = record_sampled(run->record);
    if (sampled.turns >= view->max_turns)
        *ret = agent_end_by(run, END_TURNS, "all %llu are used up", (unsigned long long)view->max_turns);
    else if (most > 0 && sampled.tokens >= most)
        *ret = agent_end_by(run, END_TOKENS, "all %llu of limits.sampled_tokens are used up", (unsigned long long)most);
    else if (steps->left_ms <= 0) {
        *ret = agent_failed(run, BLAME_AGENT, BLAME_TIME, &(struct fail){0});
    } else {
        view->max_turns -= sampled.turns;
        view->limits.sampled_tokens = most > 0 ? most - sampled.tokens : 0;
        view->max_traces += run->record->trace_count; /* each step is a conversation of its own */
        if (view->max_traces > RECORD_TRACES_MAX)
            view->max_traces = RECORD_TRACES_MAX;
        return true;
    }
    return false;
}

static enum outcome work(struct steps *steps, const struct step *step)
{
    struct agent_run *run = steps->run;
    const int64_t began_ms = loop_now_ms(), given_ms = fiber_given_time(fiber_current());
    const int64_t own_ms = (int64_t)step->view.task.limits.run_s * 1000;
    fiber_push_deadline(began_ms + (own_ms < steps->left_ms ? own_ms : steps->left_ms));
    const enum outcome outcome = run_work(run, steps->agent);
    steps->is_late |= fiber_is_late();
    fiber_pop_deadline();
    steps->left_ms -= loop_now_ms() - began_ms - (fiber_given_time(fiber_current()) - given_ms);
    return outcome;
}

/* The first end that was none of its own is the run's. */
static void note_end(struct steps *steps, const struct step *step, enum outcome outcome)
{
    const struct agent_run *run = steps->run;
    const bool has_worked = outcome == OUTCOME_OK || outcome == OUTCOME_AGENT;
    if (steps->outcome == OUTCOME_AGENT && has_worked)
        return;
    steps->outcome = outcome;
    snprintf(steps->end, sizeof(steps->end), "%s", run->end);
    if (outcome == OUTCOME_OK)
        snprintf(steps->detail, sizeof(steps->detail), "%s", run->detail);
    else
        snprintf(steps->detail, sizeof(steps->detail), "%.900s (step %s)", run->detail, step->name);
}

static bool let_agent_work(struct steps *steps, struct step *step)
{
    struct agent_run *run = steps->run;
    enum outcome outcome = OUTCOME_AGENT;
    run->end[0] = run->detail[0] = '\0';
    free(take_ptr(&run->answer));
    if (share_limits(steps, step, &outcome))
        outcome = work(steps, step);
    if (outcome != OUTCOME_CANCELLED && sandbox_breach(steps->stage->sandbox))
        outcome = OUTCOME_AGENT; /* whatever it took that for */
    free(steps->job->result.answer);
    steps->job->result.answer = take_ptr(&run->answer);
    note_end(steps, step, outcome);
    return (outcome == OUTCOME_OK || outcome == OUTCOME_AGENT) && !fiber_is_cancelled();
}

/* ---- what is collected ------------------------------------------------------------------------------------ */

static bool collect(struct steps *steps)
{
    return steps->job->task->collect.count == 0 || collect_run(steps->job, steps->stage, steps->run) || end_run(steps);
}

/* ---- its evaluation -------------------------------------------------------------------------------------- */

static void evaluate_there(struct steps *steps)
{
    steps->in_agents = true;
    steps->job->agent_goes_on = true;
    agents_evaluate(steps->job, steps->stage);
    steps->job->agent_goes_on = false;
}

static void evaluate(struct steps *steps, const struct step *step)
{
    struct job *job = steps->job;
    const int64_t began_ms = clock_ms();
    if (step->is_last)
        sandbox_spare(steps->stage->sandbox, false);
    if (step->is_apart)
        step_apart_evaluate(job, steps->stage, step->is_last);
    else
        evaluate_there(steps);
    fiber_pop_deadline();
    steps->evaluation_ms += (uint64_t)(clock_ms() - began_ms);
}

/* What the next step's agent must not find. */
static bool clear(struct steps *steps, const struct step *step)
{
    struct fail fail = {0};
    fiber_push_deadline(loop_now_ms() + TASK_STEP_CHANGE_S * 1000);
    int code = evaluator_sandbox_clear(steps->stage, steps->job, &fail);
    fiber_pop_deadline();
    if (code == 0)
        return true;
    stage_end_failed(steps->job, steps->stage, BLAME_EVALUATOR, code, &fail);
    return end_evaluation(steps, step);
}

/* Whether the next step begins. */
static bool judge(struct steps *steps, const struct step *step)
{
    struct job_result *result = &steps->job->result;
    char why[200];
    job_set_outcome(steps->job, OUTCOME_OK, "%s", steps->run->detail);
    run_end_record(steps->job, steps->run);
    if (result->outcome == OUTCOME_INFRA)
        return end_run(steps);
    evaluate(steps, step);
    if (result->outcome != OUTCOME_OK)
        return end_evaluation(steps, step);
    verdict_say(&result->verdict, "%s", result->detail);
    steps_verdict_add(steps->verdicts, &result->verdict);
    if (step->is_last)
        return false;
    if (steps_verdict_suffices(steps->verdicts, why, sizeof(why)))
        return step->is_apart || clear(steps, step);
    snprintf(steps->stopped, sizeof(steps->stopped), "step %s is the last: %s", step->name, why);
    return false;
}

/* ---- all of them ------------------------------------------------------------------------------------------- */

/* Whether the next one begins. */
static bool take(struct steps *steps, struct step *step)
{
    return prepare(steps, step) && let_agent_work(steps, step) && collect(steps) && judge(steps, step);
}

/* Job and run are of the step alone, for as long as it is worked on. */
static bool enter(struct steps *steps, size_t i, struct step *step)
{
    const size_t count = steps->task->step_count;
    *step = (struct step){.name = steps->task->steps[i].name,
                          .is_first = i == 0,
                          .is_last = i + 1 == count,
                          .is_apart = task_step_is_apart(steps->task, i)};
    snprintf(step->reason, sizeof(step->reason), "step: %s", step->name);
    if (!task_step_view(steps->task, i, &step->view) || !task_step_text(steps->text, i, &step->text)) {
        job_set_fault(steps->job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
        return end_run(steps);
    }
    steps->job->task = &step->view.task;
    steps->job->start.task = buffer_peek(&step->text);
    steps->run->task = &step->view.task;
    steps->run->reason = steps->run->record->trace_count > 0 ? step->reason : NULL;
    return true;
}

static void leave(struct steps *steps, struct step *step)
{
    steps->job->task = steps->task;
    steps->job->start.task = steps->text;
    steps->run->task = steps->task;
    steps->run->reason = NULL;
    task_step_view_finish(&step->view);
    buffer_finish(&step->text);
}

/* Shaping and all, for the whole. */
static void conclude(struct steps *steps)
{
    struct job *job = steps->job;
    AUTO_AGENTS_RUN run;
    const bool is_kept = agents_run_keep(job, &run);
    verdict_finish(&job->result.verdict);
    if (!is_kept)
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    else if (steps->evaluated != OUTCOME_OK)
        job_set_outcome(job, steps->evaluated, "%s", steps->why);
    else if (!steps_verdict_join(steps->verdicts, &job->result.verdict))
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
    else
        job_set_outcome(job, OUTCOME_OK, "%s%s%s", steps->stopped, steps->stopped[0] ? "; " : "",
                        verdict_why(&job->result.verdict));
    agents_evaluation_end(job, &run, steps->in_agents, steps->evaluation_ms);
}

static void run_all(struct steps *steps)
{
    struct job *job = steps->job;
    bool goes_on = true;
    fiber_pop_deadline(); /* each part of a step has its own */
    for (size_t i = 0; i < steps->task->step_count && goes_on; i++) {
        struct step step;
        goes_on = enter(steps, i, &step) && take(steps, &step);
        leave(steps, &step);
    }
    fiber_push_deadline(loop_now_ms() + JOB_PACK_MS);
    snprintf(steps->run->detail, sizeof(steps->run->detail), "%s", steps->detail);
    snprintf(steps->run->end, sizeof(steps->run->end), "%s", steps->end);
    run_end(job, steps->stage, steps->run, steps->outcome, steps->is_late);
    if (job->result.outcome == OUTCOME_OK || job->result.outcome == OUTCOME_AGENT)
        conclude(steps);
}

void steps_run(struct job *job, struct agent_run *run, const struct agent *agent, struct stage_sandbox *stage)
{
    AUTO_FREE struct steps_verdict *verdicts = calloc(1, sizeof(*verdicts));
    struct steps steps = {.job = job,
                          .run = run,
                          .agent = agent,
                          .stage = stage,
                          .task = job->task,
                          .text = job->start.task,
                          .left_ms = job->limit_ms,
                          .outcome = OUTCOME_OK,
                          .verdicts = verdicts,
                          .evaluated = OUTCOME_OK};
    if (!verdicts) {
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "out of memory");
        return;
    }
    verdicts->task = job->task;
    run_all(&steps);
    steps_verdict_finish(verdicts);
}
