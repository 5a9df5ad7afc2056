#include "client/gateway/polar/submit.h"

#include <errno.h>
#include <stdio.h>

#include "client/gateway/broker/refused_text.h"
#include "client/gateway/door/engines.h"
#include "client/gateway/polar/asking.h"
#include "client/gateway/polar/events.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

static void submit(struct asking *asking);

static void answer(struct asking *asking)
{
    struct buffer body = {0};
    json_text_printf(&body, "{\"task_id\":%s,\"status\":\"running\"}", asking->request.task_id);
    http_call_answer_json(asking->call, 200, &body);
}

/* That of the number that was asked for; NULL: it is gone. */
static struct polar_task *own_task(const struct asking *asking)
{
    struct polar_task *task = tasks_find(asking->of, asking->base);
    return task && task->number == asking->number ? task : NULL;
}

/* ---- the broker's answer -------------------------------------------------------------------------------- */

static void begin_task(struct asking *asking)
{
    struct polar_task *task = own_task(asking);
    answer(asking);
    if (!task)
        return;
    task->is_asked = false;
    events_task_created(task);
    for (unsigned i = 0; i < task->total; i++)
        if (!task->sessions[i].has_ended)
            events_session(task, i, "REGISTERED");
}

/* What the broker finds wrong with the task, by the field of ours. */
static void refuse_task(struct asking *asking, const struct msg_refused *refused)
{
    const struct refused_text text = refused_text(refused);
    struct polar_task *task = own_task(asking);
    if (task)
        task_drop(task);
    if (slice_is(refused->reason, refusal_wire(REFUSAL_BAD_TASK)))
        asking_refuse_field(asking->call, strcmp(text.field, "task.image") == 0 ? "runtime.image" : text.field,
                            text.words);
    else
        http_call_refuse_as(asking->call, refused);
}

/* One of that number ended before, and is forgotten here: the next. */
static void next_number(struct asking *asking)
{
    struct polar_task *task = own_task(asking);
    if (task)
        task_drop(task);
    asking->number++;
    submit(asking);
}

static void on_answer(struct http_call *call, const struct answer *told)
{
    struct asking *asking = call->state;
    const struct msg_refused *refused = &told->as.refused;
    if (told->id == MSG_group_accepted && !told->as.group_accepted.known)
        begin_task(asking);
    else if (told->id == MSG_group_accepted || slice_is(refused->reason, refusal_wire(REFUSAL_GROUP_EXISTS)) ||
             slice_is(refused->reason, refusal_wire(REFUSAL_FORGOTTEN)))
        next_number(asking);
    else
        refuse_task(asking, refused);
}

static void submit(struct asking *asking)
{
    const struct task_request *request = &asking->request;
    struct polar_task *task = tasks_add(asking->of, asking->base, asking->number, request->samples);
    AUTO_BUFFER text = {0};
    if (!task) {
        http_call_refuse(asking->call, 429, "queue-full", "",
                         "there are too many tasks: let older ones end, or ask for "
                         "their results");
        return;
    }
    task->is_asked = true;
    task_tell(task, json_object_get(json_object_get(request->task, "metadata"), "polar"));
    json_text_append_value(&text, request->task);
    struct msg_group_submit in = {.group = slice_from_str(task->group),
                                  .stream = slice_from_str(asking->of->stream),
                                  .samples = request->samples,
                                  .task = buffer_peek(&text),
                                  .priority = request->priority,
                                  .has_priority = true};
    asking->call->takes_refusals = true;
    http_call_ask(asking->call, MSG_group_submit, &in, on_answer);
}

/* ---- what is asked ------------------------------------------------------------------------------------------- */

static bool go(struct asking *asking)
{
    struct http_call *call = asking->call;
    const struct polar_task *task = tasks_find(asking->of, asking->base);
    if (task && task->is_lost)
        return false; /* it may run, or not */
    if (book_is_buried(call->kept, asking->base))
        http_call_refuse(call, 409, "cancelled", "task_id", "task %.200s was cancelled before submission",
                         asking->request.task_id);
    else if (task && !task_is_over(task))
        http_call_refuse(call, 409, "group-exists", "task_id", "task %.200s is already running",
                         asking->request.task_id);
    else {
        asking->number = task ? task->number + 1 : 0;
        submit(asking);
    }
    return true;
}

static bool may_call_back(struct http_call *call, const char *url)
{
    struct fail fail;
    if (!url || address_allow(call->gateway->settings->callbacks, url, "--callback", &fail))
        return true;
    asking_refuse_field(call, "callback_url", fail.text);
    return false;
}

static bool read_task(struct asking *asking)
{
    struct problem problem;
    struct http_call *call = asking->call;
    if (!task_request_read(call->body, clock_wall_ms(), &asking->request, &problem))
        asking_refuse_field(call, problem.field, problem.words);
    else if (may_call_back(call, asking->request.callback_url)) {
        tasks_base(asking->of, slice_from_str(asking->request.task_id), asking->base);
        return go(asking);
    }
    return true;
}

void submit_run(struct http_call *call) { asking_begin(call, false, read_task); }
