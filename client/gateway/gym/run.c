#include "client/gateway/gym/run.h"

#include <stdlib.h>

#include "client/gateway/gym/answer.h"
#include "client/gateway/gym/gym_kept.h"
#include "client/gateway/gym/row.h"
#include "client/gateway/gym/waiting.h"
#include "common/base/cleanup.h"

struct running {
    struct waiting waiting;
    json_t *params; /* the row's */
    struct buffer columns;
};

static void end(struct http_call *call)
{
    struct running *running = call->state;
    waiting_end(&running->waiting);
    json_decref(running->params);
    buffer_finish(&running->columns);
    free(running);
}

static void answer(struct http_call *call, struct buffer *body)
{
    if (body->failed)
        http_call_refuse_memory(call);
    else
        http_call_answer_json(call, 200, body);
    buffer_finish(body);
}

static void on_ended(struct http_call *call, const struct sluice_trajectory *trajectory)
{
    struct running *running = call->state;
    struct buffer body = {0};
    answer_append(trajectory, running->params, buffer_peek(&running->columns), &body);
    answer(call, &body);
}

static void fail(struct http_call *call, const char *failure, const char *words)
{
    struct running *running = call->state;
    struct buffer body = {0};
    answer_append_failure(running->params, buffer_peek(&running->columns), failure, words, true, &body);
    answer(call, &body);
}

/* What makes a run the same: its id, or the numbers of task and rollout, and the number of the attempt. */
static void append_id(const json_t *row, struct buffer *out)
{
    const char *id = json_string_value(json_object_get(row, "_ng_rollout_id"));
    if (id)
        buffer_append_str(out, id);
    else
        buffer_printf(out, "%lld-%lld", (long long)json_integer_value(json_object_get(row, "_ng_task_index")),
                      (long long)json_integer_value(json_object_get(row, "_ng_rollout_index")));
    buffer_printf(out, "-a%lld", (long long)json_integer_value(json_object_get(row, "_ng_attempt_index")));
}

void run_row(struct http_call *call)
{
    struct running *running = call->state = calloc(1, sizeof(*running));
    struct fail why;
    if (!running) {
        http_call_refuse_memory(call);
        return;
    }
    call->end = end;
    running->waiting = (struct waiting){.call = call, .ended = on_ended, .failed = fail};
    running->params = json_incref(json_object_get(call->body, "responses_create_params"));
    answer_keep_columns(call->body, &running->columns);
    json_t *task = row_task(call->body, &why);
    if (!task) {
        fail(call, "bad_row", why.text);
        return;
    }
    json_text_append_value(&running->waiting.task, task);
    json_decref(task);
    append_id(call->body, &running->waiting.id);
    json_decref(call->body);
    call->body = NULL;
    waiting_begin(&running->waiting, call, ((struct gym *)call->kept)->runs);
}
