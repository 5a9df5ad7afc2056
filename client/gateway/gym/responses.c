#include "client/gateway/gym/responses.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/gym/gym_kept.h"
#include "client/gateway/gym/model_turn.h"
#include "client/gateway/gym/reply.h"
#include "client/gateway/gym/row.h"
#include "client/gateway/gym/waiting.h"

struct asking {
    struct waiting waiting;
    struct reply reply;
};

static void end(struct http_call *call)
{
    struct asking *asking = call->state;
    waiting_end(&asking->waiting);
    gym_reply_finish(&asking->reply);
    free(asking);
}

static void on_failed(struct http_call *call, const char *reason, const char *words)
{
    struct asking *asking = call->state;
    reply_refuse(&asking->reply, http_call_status_of(slice_from_str(reason)), reason, words);
}

static void on_item(void *arg, size_t index, struct slice item) { reply_item(arg, index, item); }

static void on_ended(struct http_call *call, const struct sluice_trajectory *trajectory)
{
    struct asking *asking = call->state;
    const struct response_asked asked = reply_asked(&asking->reply);
    struct buffer body = {0};
    if (!response_has_tokens(trajectory)) {
        reply_refuse(&asking->reply, strcmp(trajectory->outcome, "task") == 0 ? 400 : 503, trajectory->outcome,
                     trajectory->detail);
        return;
    }
    response_append(trajectory, &asked, &body);
    if (asking->reply.is_stream)
        response_each(trajectory, asked.with_tokens, on_item, &asking->reply);
    reply_whole(&asking->reply, &body);
}

static void append_id(const struct http_call *call, struct buffer *out)
{
    buffer_append_str(out, "responses ");
    for (size_t i = 0; i < call->params.count; i++)
        buffer_append(out, call->params.of[i].value.data, call->params.of[i].value.len);
}

static void run_agent(struct http_call *call)
{
    struct fail why;
    json_t *task = row_request_task(call->body, "responses", &why);
    struct asking *asking = task ? calloc(1, sizeof(*asking)) : NULL;
    if (!asking) {
        json_decref(task);
        reply_refuse_call(call, task ? 503 : 400, task ? "queue-full" : "invalid_request",
                          task ? "out of memory" : why.text);
        return;
    }
    call->state = asking;
    call->end = end;
    asking->waiting = (struct waiting){.call = call, .ended = on_ended, .failed = on_failed};
    json_text_append_value(&asking->waiting.task, task);
    json_decref(task);
    append_id(call, &asking->waiting.id);
    reply_begin(&asking->reply, call);
    waiting_begin(&asking->waiting, call, ((struct gym *)call->kept)->runs);
}

void responses_run(struct http_call *call)
{
    if (model_turn_is_asked(call->body))
        model_turn_run(call);
    else
        run_agent(call);
}
