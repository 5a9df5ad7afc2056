/*
 * An evaluator of a handler. It is given the answer and the conversation; the evaluator's sandbox is opened when it
 * first asks for a file or a command, and so costs nothing where it does not.
 */
#include "workers/handlers/roles/evaluator.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/evaluators/judged.h"
#include "workers/handlers/roles/begin.h"
#include "workers/handlers/handlers.h"
#include "workers/handlers/processes/own.h"
#include "workers/handlers/roles/requests.h"
#include "workers/handlers/roles/score.h"
#include "workers/stages/sandbox/stage_confirm.h"

enum { TRACE_SHOWN = 1200 };

struct evaluation {
    struct job *job;
    struct stage_sandbox stage;
    struct handler_host host;
    struct handler_job call;
    struct own_handler own; /* where it comes with the task */
    bool is_unknown;        /* it asked for what the agent left, which is not known */
};

static int open_sandbox(void *arg, struct sandbox **ret, struct fail *fail)
{
    struct evaluation *evaluation = arg;
    evaluation->is_unknown = slice_is(evaluation->job->start.run_layer_digest, LAYER_UNKNOWN);
    if (evaluation->is_unknown)
        return fail_set(fail, -ENODATA, "what the agent left is not known, and nothing was scored");
    int code = evaluation->stage.sandbox ? 0 : evaluator_sandbox_open(&evaluation->stage, evaluation->job, fail);
    *ret = evaluation->stage.sandbox;
    return code;
}

/* Who is to judge: the task's own handler, in the sandbox, or one beside the worker. */
static int find_peer(struct evaluation *evaluation, struct handler_peer **ret, struct fail *fail)
{
    const struct job *job = evaluation->job;
    const char *name = job->task->eval_kind;
    const struct task_handler *handler = task_handler_find(job->task, name);
    struct sandbox *sandbox;
    if (!handler)
        return handlers_find(job->context->handlers, HANDLER_EVALUATOR, name, ret, fail);
    int code = open_sandbox(evaluation, &sandbox, fail);
    if (code == 0)
        code = own_handler_open(&evaluation->own, sandbox, handler, HANDLER_EVALUATOR, stage_wire(STAGE_EVAL), fail);
    evaluation->host.is_inside = true;
    *ret = &evaluation->own.peer;
    return code;
}

static int begin(struct evaluation *evaluation, struct fail *fail)
{
    const struct job *job = evaluation->job;
    AUTO_BUFFER messages = {0};
    struct handler_peer *peer;
    AUTO_HANDLER_BEGIN opening = {.task = {0}};
    int code = judged_messages(job, false, &messages, fail);
    if (code == 0)
        code = find_peer(evaluation, &peer, fail);
    if (code == 0)
        code = handler_begin_make(job, TASK_VIEWER_EVALUATOR, job->task->eval_kind, &opening, fail);
    if (code < 0)
        return code;
    opening.message.answer = job->start.answer;
    opening.message.has_answer = job->start.has_answer;
    opening.message.messages = buffer_peek(&messages);
    opening.message.has_messages = messages.len > 0;
    return handler_job_begin(&evaluation->call, peer, HANDLER_EVALUATOR, &opening.message, fail);
}

/* ---- how it ends -------------------------------------------------------------------------- */

static void end_failed(struct job *job, const struct msg_handler_failed *failed)
{
    const struct slice trace = text_tail_slice(failed->trace, TRACE_SHOWN);
    job_set_outcome(job, OUTCOME_TASK, "the evaluator is broken: %.*s%s%.*s", SLICE_ARG(failed->error),
                    trace.len ? ": " : "", SLICE_ARG(trace));
}

static void end_scored(struct evaluation *evaluation)
{
    struct job *job = evaluation->job;
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    if (evaluation->stage.sandbox && sandbox_breach(evaluation->stage.sandbox))
        job_set_outcome(job, OUTCOME_TASK, "the evaluator went over its %s limit",
                        sandbox_breach(evaluation->stage.sandbox));
    else if (score_read(&evaluation->call.message.as.handler_score, &evaluation->host.notes, &verdict, &no)) {
        if (!verdict.why) /* else the agent's own words would stand there alone */
            verdict_say(&verdict, "%s says %.10g", job->task->eval_kind, verdict.reward);
        evaluator_end(job, &verdict);
    } else
        job_set_outcome(job, OUTCOME_TASK, "the evaluator is broken: %s", no.text);
}

static void end_error(struct evaluation *evaluation, int code, const struct fail *fail)
{
    struct job *job = evaluation->job;
    if (evaluation->is_unknown)
        job_set_outcome(job, OUTCOME_AGENT, "%s", fail->text);
    else if (code == -ETIMEDOUT && evaluation->call.id > 0 && !evaluation->host.has_acted)
        job_set_outcome(job, OUTCOME_TASK, "the evaluator %s had not ended when the time of the stage was up",
                        job->task->eval_kind);
    else
        stage_end_failed(job, &evaluation->stage, BLAME_EVALUATOR, code, fail);
}

static void handler_run(struct job *job)
{
    struct evaluation evaluation = {.job = job, .stage = {.part = STAGE_EVALUATORS}};
    struct fail fail = {0};
    evaluation.host = (struct handler_host){.task = job->task, .open = open_sandbox, .arg = &evaluation};
    int code = begin(&evaluation, &fail);
    job_begin_work(job);
    if (code == 0)
        code = handler_serve(&evaluation.host, &evaluation.call, &fail);
    if (code < 0)
        end_error(&evaluation, code, &fail);
    else if (evaluation.call.message.id == MSG_handler_failed)
        end_failed(job, &evaluation.call.message.as.handler_failed);
    else
        end_scored(&evaluation);
    handler_job_end(&evaluation.call, job->result.detail);
    own_handler_close(&evaluation.own);
    verdict_finish(&evaluation.host.notes);
    stage_confirm(job, &evaluation.stage);
    evaluator_sandbox_close(&evaluation.stage, job);
}

const struct evaluator evaluator_handler = {.run = handler_run};
