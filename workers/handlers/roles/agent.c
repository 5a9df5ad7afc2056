/*
 * An agent of a handler: it asks for turns of the model, calls of the task's tools, commands and files, and says how it
 * ended. The run's sandbox is opened when something first needs it.
 */
#include "workers/handlers/roles/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "workers/agents/ends.h"
#include "workers/handlers/roles/agent_turns.h"
#include "workers/handlers/roles/begin.h"
#include "workers/handlers/handlers.h"
#include "workers/handlers/processes/own.h"
#include "workers/handlers/roles/requests.h"

enum { TRACE_SHOWN = 600 };

struct acting {
    struct agent_run *run;
    struct agent_turns turns;
    struct handler_host host;
    struct handler_job call;
    struct own_handler own; /* where it comes with the task */
};

static int open_sandbox(void *arg, struct sandbox **ret, struct fail *fail)
{
    struct acting *acting = arg;
    int code = acting->run->sandbox ? 0 : acting->run->open_sandbox(acting->run, fail);
    *ret = acting->run->sandbox;
    return code;
}

/* Who is to act: the task's own handler, in the sandbox, or one beside the worker. */
static int find_peer(struct acting *acting, struct handler_peer **ret, struct fail *fail)
{
    const struct task *task = acting->run->task;
    const struct task_handler *handler = task_handler_find(task, task->agent_kind);
    struct sandbox *sandbox;
    if (!handler)
        return handlers_find(acting->run->job->context->handlers, HANDLER_AGENT, task->agent_kind, ret, fail);
    int code = open_sandbox(acting, &sandbox, fail);
    if (code == 0)
        code = own_handler_open(&acting->own, sandbox, handler, HANDLER_AGENT, stage_wire(STAGE_RUN), fail);
    acting->host.is_inside = true;
    *ret = &acting->own.peer;
    return code;
}

static int begin(struct acting *acting, struct fail *fail)
{
    struct agent_run *run = acting->run;
    const struct job *job = run->job;
    struct handler_peer *peer;
    AUTO_HANDLER_BEGIN opening = {.task = {0}};
    int code = find_peer(acting, &peer, fail);
    if (code == 0)
        code = handler_begin_make(job, TASK_VIEWER_AGENT, run->task->agent_kind, &opening, fail);
    if (code < 0)
        return code;
    const struct offer *offer = offers_find(&peer->offers, HANDLER_AGENT, run->task->agent_kind);
    snprintf(run->record->agent, sizeof(run->record->agent), "%s@%s", offer->name, offer->version);
    return handler_job_begin(&acting->call, peer, HANDLER_AGENT, &opening.message, fail);
}

static int serve_agent(void *arg, struct handler_job *call, struct fail *fail)
{
    struct acting *acting = arg;
    switch (call->message.id) {
    case MSG_handler_sample: return agent_turns_sample(&acting->turns, call, fail);
    case MSG_handler_fork: return agent_turns_fork(&acting->turns, call, fail);
    case MSG_handler_tool: return agent_turns_tool(&acting->turns, call, fail);
    default: return fail_set(fail, -ENOMSG, "%s", message_get(call->message.id)->wire);
    }
}

/* ---- how it ends ---------------------------------------------------------------------------------- */

static enum outcome end_failed(struct agent_run *run, const struct msg_handler_failed *failed)
{
    const struct slice trace = text_tail_slice(failed->trace, TRACE_SHOWN);
    return agent_end(run, OUTCOME_TASK, "the agent is broken: %.*s%s%.*s", SLICE_ARG(failed->error),
                     trace.len ? ": " : "", SLICE_ARG(trace));
}

/* A budget was used up, which is why it ended. */
static enum outcome end_over(const struct acting *acting)
{
    struct agent_run *run = acting->run;
    const struct task *task = run->task;
    if (acting->turns.over == OVER_TURNS)
        return agent_end_by(run, END_TURNS, "all %llu are used up", (unsigned long long)task->max_turns);
    if (acting->turns.over == OVER_TOKENS)
        return agent_end_by(run, END_TOKENS, "all %llu of limits.sampled_tokens are used up",
                            (unsigned long long)task->limits.sampled_tokens);
    return agent_end(run, OUTCOME_AGENT, "context: %s", acting->turns.why);
}

static enum outcome end_ended(struct acting *acting)
{
    struct agent_run *run = acting->run;
    const struct msg_handler_end *end = &acting->call.message.as.handler_end;
    enum outcome outcome = OUTCOME_OK;
    if (end->has_answer) {
        free(run->answer);
        run->answer = strndup((const char *)end->answer.data, end->answer.len);
    }
    if (end->has_outcome && (!outcome_parse(end->outcome, &outcome) ||
                             (outcome != OUTCOME_OK && outcome != OUTCOME_AGENT && outcome != OUTCOME_TASK)))
        return agent_end(run, OUTCOME_TASK,
                         "the agent is broken: it ended as \"%.*s\", which is not one of ok, agent and task",
                         SLICE_ARG(end->outcome));
    if (acting->turns.over != OVER_NONE && outcome != OUTCOME_TASK)
        return end_over(acting);
    if (end->detail.len > 0)
        return agent_end(run, outcome, "%.*s", SLICE_ARG(end->detail));
    return agent_end(run, outcome, "ended after %zu turns", acting->turns.conversation.model.turns);
}

static enum outcome end_error(struct acting *acting, int code, const struct fail *fail)
{
    struct agent_run *run = acting->run;
    return run->has_open_failed ? agent_open_failed(run, code, fail)
                                : conversation_end(&acting->turns.conversation, code, fail);
}

static enum outcome handler_run(struct agent_run *run)
{
    struct acting acting = {.run = run, .turns = {.run = run, .conversation = {.model.run = run}}};
    struct fail fail = {0};
    acting.host = (struct handler_host){
        .task = run->task, .open = open_sandbox, .more = serve_agent, .arg = &acting, .record = run->record};
    int code = begin(&acting, &fail);
    if (code == 0)
        code = handler_serve(&acting.host, &acting.call, &fail);
    enum outcome outcome = code < 0 ? end_error(&acting, code, &fail)
                           : acting.call.message.id == MSG_handler_failed
                               ? end_failed(run, &acting.call.message.as.handler_failed)
                               : end_ended(&acting);
    handler_job_end(&acting.call, run->detail);
    verdict_finish(&acting.host.notes);
    own_handler_close(&acting.own);
    agent_turns_close(&acting.turns);
    return outcome;
}

const struct agent agent_handler = {
    .name = "handler",
    .doc = "a handler's, by the name that the task says",
    .needs_engine = true,
    .run = handler_run,
};
