#include "workers/handlers/roles/hook.h"

#include <errno.h>

#include "schemas/messages/message_max.h"
#include "workers/handlers/handlers.h"
#include "workers/handlers/roles/begin.h"
#include "workers/handlers/roles/requests.h"
#include "common/loop/loop_now.h"

enum { ROOM_LOOK_MS = 5 };

static int open_sandbox(void *arg, struct sandbox **ret, struct fail *fail)
{
    const struct agent_run *run = arg;
    *ret = run->sandbox;
    return *ret ? 0 : fail_set(fail, -EINVAL, "the rollout has no sandbox");
}

/* ---- what it answers ---------------------------------------------------------------------------------- */

static int take_decision(const struct msg_handler_decision *decision, bool is_reply, struct hook_answer *ret,
                         struct fail *fail)
{
    const struct slice json = is_reply ? decision->reply : decision->messages;
    const bool has_json = is_reply ? decision->has_reply : decision->has_messages;
    if (slice_is(decision->action, "pass")) {
        ret->action = HOOK_PASS;
    } else if (slice_is(decision->action, "refuse")) {
        ret->action = HOOK_REFUSE;
        if (decision->has_words)
            buffer_append(&ret->words, decision->words.data, decision->words.len);
    } else if (slice_is(decision->action, "change") && has_json) {
        ret->action = HOOK_CHANGE;
        buffer_append(&ret->json, json.data, json.len);
    } else {
        return fail_set(fail, -EOWNERDEAD, "it answers \"%.*s\"%s", SLICE_ARG(decision->action),
                        slice_is(decision->action, "change") ? " and not with what"
                                                             : ", which is not one of pass, change and refuse");
    }
    return ret->words.failed || ret->json.failed ? fail_memory(fail) : 0;
}

static int take_answer(const struct handler_message *message, bool is_reply, struct hook_answer *ret, struct fail *fail)
{
    if (message->id == MSG_handler_decision)
        return take_decision(&message->as.handler_decision, is_reply, ret, fail);
    return fail_set(fail, -EOWNERDEAD, "%.*s", SLICE_ARG(message->as.handler_failed.error));
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

/* Questions are long, and as many as there are requests of harnesses: each waits until the hook has read of the others
 * what makes room for it. */
static int await_peer(const struct handler_hooks *hooks, size_t which, struct handler_peer **ret, const char **ret_name,
                      struct fail *fail)
{
    for (;;) {
        int code = handlers_find_hook(hooks->job->context->handlers, which, ret, ret_name, fail);
        if (code < 0 || connection_has_room(&(*ret)->connection))
            return code;
        code = await_sleep(ROOM_LOOK_MS);
        if (code < 0)
            return fail_set(fail, code == -ETIMEDOUT ? -EBUSY : code, "no room for the question");
    }
}

static int begin(const struct handler_hooks *hooks, size_t which, const struct hook_asking *asking,
                 struct handler_job *call, struct fail *fail)
{
    struct handler_peer *peer;
    const char *name;
    AUTO_HANDLER_BEGIN opening = {.task = {0}};
    int code = await_peer(hooks, which, &peer, &name, fail);
    if (code == 0)
        code = handler_begin_make(hooks->job, TASK_VIEWER_AGENT, name, &opening, fail);
    if (code < 0)
        return code;
    struct msg_handler_begin *message = &opening.message;
    message->turn = asking->turn;
    message->messages = asking->messages;
    message->tools = asking->tools;
    message->reply = asking->reply;
    message->has_turn = true;
    message->has_messages = asking->messages.len > 0;
    message->has_tools = asking->tools.len > 0;
    message->has_reply = asking->reply.len > 0;
    return handler_job_begin(call, peer, HANDLER_HOOK, message, fail);
}

static int ask_it(struct handler_hooks *hooks, size_t which, const struct hook_asking *asking, struct hook_answer *ret,
                  struct fail *fail)
{
    struct handler_host host = {.task = hooks->job->task,
                                .open = open_sandbox,
                                .arg = (void *)(uintptr_t)hooks->run,
                                .record = hooks->run->record};
    struct handler_job call = {.peer = NULL};
    int code = begin(hooks, which, asking, &call, fail);
    if (code == 0)
        code = handler_serve(&host, &call, fail);
    if (code == 0)
        code = take_answer(&call.message, asking->reply.len > 0, ret, fail);
    handler_job_end(&call, code < 0 ? fail->text : "it has answered");
    verdict_finish(&host.notes);
    return code;
}

/* Of what is too large for a message no hook can be asked: that is nobody's fault, as a prompt that is too long. */
static int check_size(const struct hook_asking *asking, struct fail *fail)
{
    const size_t size = asking->messages.len + asking->tools.len + asking->reply.len;
    return size <= MESSAGE_MAX(handler_begin, messages)
               ? 0
               : fail_set(fail, -E2BIG, "it has %zu bytes of messages and tools; at most %d pass a hook", size,
                          (int)MESSAGE_MAX(handler_begin, messages));
}

/* What it cannot be asked or does not answer in time is its own fault, not the task's. */
static int ask(struct hook_source *source, size_t which, const struct hook_asking *asking, struct hook_answer *ret,
               struct fail *fail)
{
    struct handler_hooks *hooks = (struct handler_hooks *)((char *)source - offsetof(struct handler_hooks, source));
    const int64_t bound_ms = handlers_hook_ms(hooks->job->context->handlers);
    struct fail why = {0};
    if (check_size(asking, fail) < 0)
        return fail->code;
    fiber_push_deadline(loop_now_ms() + bound_ms);
    int code = ask_it(hooks, which, asking, ret, &why);
    fiber_pop_deadline();
    if (code == 0)
        return 0;
    if (code == -EBUSY) /* it was not asked: nobody's fault but that of so many */
        return fiber_is_late() ? fail_set(fail, -ETIMEDOUT, "the time is up")
                               : fail_set(fail, -ENOSYS, "more is to be asked of hooks than they read in %g s",
                                          (double)bound_ms / 1000);
    if (code == -ETIMEDOUT && !fiber_is_late())
        return fail_set(fail, -EOWNERDEAD, "the hook %s did not answer within %g s: %s", source->name(source, which),
                        (double)bound_ms / 1000, why.text);
    const bool is_own = code == -EOWNERDEAD || code == -EINVAL;
    return fail_set(fail, is_own ? -EOWNERDEAD : code, "the hook %s: %s", source->name(source, which), why.text);
}

static const char *name_of(const struct hook_source *source, size_t which)
{
    const struct handler_hooks *hooks = (const struct handler_hooks *)((const char *)source -
                                                                       offsetof(struct handler_hooks, source));
    return handlers_hook_name(hooks->job->context->handlers, which);
}

void handler_hooks_init(struct handler_hooks *hooks, const struct job *job, const struct agent_run *run)
{
    const size_t count = handlers_count_hooks(job->context->handlers);
    *hooks = (struct handler_hooks){.source = {.count = count, .ask = ask, .name = name_of}, .job = job, .run = run};
}
