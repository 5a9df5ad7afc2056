#include "client/gateway/polar/asking.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"

enum { AGAIN_MS = 20 };

static void end(struct http_call *call)
{
    struct asking *asking = call->state;
    struct polar_task *task = asking->of && asking->request.task ? tasks_find(asking->of, asking->base) : NULL;
    if (task && task->number == asking->number)
        task->is_lost = task->is_asked;
    loop_cancel(call->gateway->loop, &asking->again);
    results_finish(&asking->results);
    task_request_finish(&asking->request);
    if (asking->of)
        asking->of->users--;
    free(asking);
}

static void on_again(void *arg)
{
    struct asking *asking = arg;
    const bool is_late = clock_ms() > asking->ends_ms || caller_refused(asking->of->identity->caller);
    asking->again = NULL;
    if (book_is_ready(asking->of) && asking->go(asking))
        return;
    if (is_late && !book_is_ready(asking->of))
        http_call_refuse_silence(asking->call);
    else
        asking->again = loop_after(asking->call->gateway->loop, AGAIN_MS, on_again, asking);
}

void asking_go_on(struct asking *asking, int64_t wait_ms, bool (*go)(struct asking *asking))
{
    asking->go = go;
    asking->ends_ms = clock_ms() + wait_ms;
    on_again(asking);
}

static bool find_id(struct asking *asking)
{
    return http_call_param(asking->call, "task_id", asking->id, sizeof(asking->id)) &&
           tasks_base(asking->of, slice_from_str(asking->id), asking->base);
}

struct asking *asking_begin(struct http_call *call, bool with_id, bool (*go)(struct asking *asking))
{
    struct asking *asking = calloc(1, sizeof(*asking));
    struct polar_of *of = asking ? book_of(call->kept, call->identity) : NULL;
    if (!of) {
        free(asking);
        http_call_refuse_memory(call);
        return NULL;
    }
    *asking = (struct asking){.call = call, .of = of};
    of->users++;
    call->state = asking;
    call->end = end;
    if (with_id && !find_id(asking))
        return NULL;
    asking_go_on(asking, HTTP_CALL_WAIT_MS, go);
    return asking;
}

/* "runtime.prepare.2.source" as ["body", "runtime", "prepare", 2, "source"]. */
static void append_place(const char *field, struct buffer *out)
{
    buffer_append_str(out, "[\"body\"");
    for (const char *at = field; *at; at += *at == '.') {
        const size_t len = strcspn(at, ".");
        buffer_append_str(out, ",");
        if (strspn(at, "0123456789") >= len)
            buffer_append(out, at, len);
        else
            json_text_append(out, slice_of(at, len));
        at += len;
    }
    buffer_append_str(out, "]");
}

void asking_refuse_field(struct http_call *call, const char *field, const char *words)
{
    struct buffer body = {0};
    buffer_append_str(&body, "{\"detail\":[{\"loc\":");
    append_place(field, &body);
    json_text_printf(&body, ",\"msg\":%s,\"type\":\"value_error\"}]}", words);
    http_call_answer_json(call, 422, &body);
}

struct polar_task *asking_task(struct asking *asking)
{
    struct polar_task *task = tasks_find(asking->of, asking->base);
    if (!task)
        http_call_refuse(asking->call, 404, "not-found", "task_id", "Task not found");
    else if (!task->id)
        task->id = strdup(asking->id);
    return task;
}
