#include "workers/handlers/roles/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/agent.h"
#include "workers/handlers/roles/begin.h"
#include "workers/handlers/handlers.h"
#include "workers/handlers/processes/own.h"
#include "workers/handlers/roles/requests.h"
#include "workers/tools/schema_rows.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/output.h"

struct handler_tool {
    struct tool tool;
    struct handler_tools *tools;
    char name[HANDLER_NAME_MAX + 1];
    char *doc;
    json_t *parameters;
    struct schema_rows rows;
    struct own_handler own; /* where it comes with the task */
};

static int open_sandbox(void *arg, struct sandbox **ret, struct fail *fail)
{
    const struct toolbox *box = arg;
    *ret = box->sandbox;
    return *ret ? 0 : fail_set(fail, -EINVAL, "a tool asks for a sandbox, and the rollout has none");
}

/* ---- what a call gives ------------------------------------------------------------------------ */

static int take_output(const struct toolbox *box, const struct msg_handler_output *output, struct tool_result *ret,
                       struct fail *fail)
{
    struct output shown;
    output_init(&shown, box->limits->output_bytes);
    output_append(&shown, output->text.data, output->text.len);
    ret->text = output_take(&shown, &ret->len);
    output_finish(&shown);
    ret->total = output->text.len;
    ret->is_error = output->has_is_error && output->is_error;
    ret->status = ret->is_error;
    ret->is_final = output->has_answer;
    if (output->has_answer)
        ret->answer = strndup((const char *)output->answer.data, output->answer.len);
    return ret->text && (ret->answer || !output->has_answer) ? 0 : fail_memory(fail);
}

static int take_answer(const struct handler_tool *self, const struct toolbox *box,
                       const struct handler_message *message, struct tool_result *ret, struct fail *fail)
{
    if (message->id == MSG_handler_output)
        return take_output(box, &message->as.handler_output, ret, fail);
    return tool_refuse(ret, fail, "%s went wrong: %.*s", self->name, SLICE_ARG(message->as.handler_failed.error));
}

static int begin(struct handler_tool *self, struct slice arguments, struct handler_job *call, struct fail *fail)
{
    const struct job *job = self->tools->job;
    struct handler_peer *peer;
    AUTO_HANDLER_BEGIN opening = {.task = {0}};
    int code = 0;
    if (self->own.handler)
        peer = &self->own.peer;
    else
        code = handlers_find(job->context->handlers, HANDLER_TOOL, self->name, &peer, fail);
    if (code == 0 && self->own.why[0])
        code = fail_set(fail, -ENOTRECOVERABLE, "the task's handler %s: %s", self->name, self->own.why);
    if (code == 0)
        code = handler_begin_make(job, TASK_VIEWER_AGENT, self->name, &opening, fail);
    if (code < 0)
        return code;
    opening.message.arguments = arguments;
    opening.message.has_arguments = true;
    return handler_job_begin(call, peer, HANDLER_TOOL, &opening.message, fail);
}

static int make_call(struct handler_tool *self, struct toolbox *box, struct slice arguments, struct tool_result *ret,
                     struct fail *fail)
{
    struct handler_host host = {.task = self->tools->job->task,
                                .open = open_sandbox,
                                .arg = box,
                                .record = self->tools->run ? self->tools->run->record : NULL,
                                .is_inside = self->own.handler != NULL};
    struct handler_job call = {.peer = NULL};
    int code = begin(self, arguments, &call, fail);
    if (code == 0)
        code = handler_serve(&host, &call, fail);
    if (code == 0)
        code = take_answer(self, box, &call.message, ret, fail);
    handler_job_end(&call, fail->code < 0 && code < 0 ? fail->text : "the call has ended");
    verdict_finish(&host.notes);
    return code;
}

/* limits.command_s bounds a call, as it bounds a command; the model is told of that. */
static int call(struct toolbox *box, void *state, const json_t *arguments, struct tool_result *ret, struct fail *fail)
{
    struct handler_tool *self = state;
    AUTO_FREE char *text = json_dumps(arguments, JSON_COMPACT);
    if (!text)
        return fail_memory(fail);
    const int64_t deadline_ms = loop_now_ms() + (int64_t)box->limits->command_s * 1000;
    fiber_push_deadline(deadline_ms);
    int code = make_call(self, box, slice_from_str(text), ret, fail);
    fiber_pop_deadline();
    if (code != -ETIMEDOUT || fiber_is_late())
        return code;
    ret->timed_out = true;
    return tool_refuse(ret, fail, "%s did not answer within %llu s.", self->name,
                       (unsigned long long)box->limits->command_s);
}

/* ---- the rows -------------------------------------------------------------------------------------- */

static void destroy(struct handler_tool *self)
{
    own_handler_close(&self->own);
    schema_rows_finish(&self->rows);
    json_decref(self->parameters);
    free(self->doc);
    free(self);
}

/* What the model is told of it. */
static int describe(struct handler_tool *self, const struct offer *offer, struct fail *fail)
{
    self->doc = strdup(offer->doc);
    self->parameters = json_deep_copy(offer->parameters);
    if (!self->doc || !self->parameters || !schema_rows_read(self->parameters, &self->rows))
        return fail_memory(fail);
    struct tool tool = {
        .name = self->name, .doc = self->doc, .parameters = self->parameters, .self = self, .call = call};
    memcpy(tool.arguments, self->rows.list, sizeof(tool.arguments));
    self->tool = tool;
    return 0;
}

/* One that comes with the task begins before it is described. */
static int start_own(struct handler_tool *self, const struct task_handler *handler, const struct offer **ret,
                     struct fail *fail)
{
    struct sandbox *sandbox = self->tools->run ? self->tools->run->sandbox : NULL;
    if (!sandbox)
        return fail_set(fail, -EINVAL, "the tool %s comes with the task and needs a sandbox", handler->name);
    int code = own_handler_open(&self->own, sandbox, handler, HANDLER_TOOL, stage_wire(STAGE_RUN), fail);
    *ret = offers_find(&self->own.peer.offers, HANDLER_TOOL, handler->name);
    return code;
}

static int find(struct tool_source *source, const char *name, const struct tool **ret, struct fail *fail)
{
    struct handler_tools *tools = (struct handler_tools *)((char *)source - offsetof(struct handler_tools, source));
    const struct task_handler *handler = task_handler_find(tools->job->task, name);
    const struct offer *offer = handler ? NULL : handlers_find_offer(tools->job->context->handlers, HANDLER_TOOL, name);
    if (!offer && !handler)
        return fail_set(fail, -EOWNERDEAD, "no handler of this worker offers the tool %.64s", name);
    struct handler_tool *self = tools->count < TOOLBOX_MAX ? calloc(1, sizeof(*self)) : NULL;
    if (!self)
        return fail_memory(fail);
    tools->made[tools->count++] = self;
    self->tools = tools;
    snprintf(self->name, sizeof(self->name), "%s", name);
    int code = handler ? start_own(self, handler, &offer, fail) : 0;
    if (code == 0)
        code = describe(self, offer, fail);
    *ret = &self->tool;
    return code;
}

void handler_tools_init(struct handler_tools *tools, const struct job *job)
{
    *tools = (struct handler_tools){.source = {.find = find}, .job = job};
}

void handler_tools_finish(struct handler_tools *tools)
{
    while (tools->count > 0)
        destroy(tools->made[--tools->count]);
}
