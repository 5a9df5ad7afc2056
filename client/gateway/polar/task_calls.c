#include "client/gateway/polar/task_calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/polar/asking.h"
#include "client/gateway/polar/session_result.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { CANCEL_WAIT_MS = 5000, LIST_STANDARD = 200, LIST_MAX = 1000 };

/* ---- one -------------------------------------------------------------------------------------------------- */

static void on_results(void *arg, bool is_whole)
{
    struct asking *asking = arg;
    struct polar_task *task = results_task(&asking->results);
    struct buffer body = {0};
    if (!task || !is_whole) {
        http_call_refuse(asking->call, task ? 503 : 404, "broker-away", "",
                         task ? "the broker does not tell the results" : "Task not found");
        return;
    }
    results_append_status(&asking->results, task, asking->id, &body);
    if (task_is_over(task) && !task->had_ms)
        task->had_ms = clock_ms();
    http_call_answer_json(asking->call, 200, &body);
}

static bool go_get(struct asking *asking)
{
    const struct polar_task *task = asking_task(asking);
    if (task)
        results_begin(&asking->results, task, on_results, asking);
    return true;
}

void task_get(struct http_call *call) { asking_begin(call, true, go_get); }

/* ---- an end ----------------------------------------------------------------------------------------------- */

static bool has_ended(struct asking *asking)
{
    const struct polar_task *task = tasks_find(asking->of, asking->base);
    if (task && !task_is_over(task) && clock_ms() <= asking->ends_ms)
        return false;
    return go_get(asking);
}

static void bury(struct asking *asking)
{
    struct buffer body = {0};
    if (!book_bury(asking->call->kept, asking->base)) {
        http_call_refuse(asking->call, 503, "queue-full", "", "too many tasks were cancelled before they came");
        return;
    }
    json_text_printf(&body,
                     "{\"task_id\":%s,\"status\":\"cancelled\",\"total_sessions\":0,\"completed_sessions\":0,"
                     "\"results\":[],\"result_paths\":[]}",
                     asking->id);
    http_call_answer_json(asking->call, 200, &body);
}

static bool go_delete(struct asking *asking)
{
    const char *registers = exchange_query(asking->call->exchange, "register_if_missing");
    struct polar_task *task = tasks_find(asking->of, asking->base);
    if (!task && registers && (strcmp(registers, "true") == 0 || strcmp(registers, "1") == 0)) {
        bury(asking);
    } else if (asking_task(asking)) {
        if (task->status == TASK_RUNNING || (task->status == TASK_CANCELLING && !task->ask.caller)) {
            task->status = TASK_CANCELLING;
            task_cancel(task);
        }
        asking_go_on(asking, CANCEL_WAIT_MS, has_ended);
    }
    return true;
}

void task_delete(struct http_call *call) { asking_begin(call, true, go_delete); }

/* ---- all of them ------------------------------------------------------------------------------------------ */

static int newest_first(const void *a, const void *b)
{
    const struct polar_task *x = *(struct polar_task *const *)a, *y = *(struct polar_task *const *)b;
    return (x->updated_ms < y->updated_ms) - (x->updated_ms > y->updated_ms);
}

/* Sorted; NULL: out of memory. */
static struct polar_task **all_tasks(const struct polar_of *of)
{
    struct polar_task **ret = calloc(of->tasks.count + 1, sizeof(struct polar_task *));
    size_t at = 0, count = 0;
    for (struct polar_task *task; ret && (task = table_next(&of->tasks, &at));)
        ret[count++] = task;
    if (ret)
        qsort(ret, count, sizeof(*ret), newest_first);
    return ret;
}

static void append_mean(struct buffer *out, double sum, size_t count)
{
    if (count > 0)
        json_text_append_number(out, sum / (double)count);
    else
        buffer_append_str(out, "null");
}

static void append_means(const struct polar_task *task, struct buffer *out)
{
    double reward = 0, traces = 0, turns = 0;
    size_t rewards = 0, ended = 0;
    for (unsigned i = 0; i < task->total; i++) {
        const struct polar_session *session = &task->sessions[i];
        if (!session->has_ended)
            continue;
        ended++;
        rewards += session->has_reward;
        reward += session->has_reward ? session->reward : 0;
        traces += (double)session->traces;
        turns += (double)session->turns;
    }
    buffer_append_str(out, ",\"mean_reward\":");
    append_mean(out, reward, rewards);
    buffer_append_str(out, ",\"mean_traces\":");
    append_mean(out, traces, ended);
    buffer_append_str(out, ",\"mean_completions\":");
    append_mean(out, turns, ended);
}

static void append_task(const struct polar_task *task, struct buffer *out)
{
    json_text_printf(out,
                     "{\"task_id\":%s,\"status\":%s,\"harness\":%s,\"model\":%s,\"num_samples\":%u,"
                     "\"completed_sessions\":%u,\"errored_sessions\":%u",
                     task->id ? task->id : task->group, task_status_word(task), task->harness ? task->harness : "",
                     task->model ? task->model : "", (uint64_t)task->total, (uint64_t)task->completed,
                     (uint64_t)task->errored);
    append_means(task, out);
    json_text_printf(out, ",\"created_at\":%g,\"updated_at\":%g,\"source\":\"live\"}", (double)task->created_ms / 1000,
                     (double)task->updated_ms / 1000);
}

static bool is_wanted(const struct http_call *call, const struct polar_task *task)
{
    const char *status = exchange_query(call->exchange, "status"), *harness = exchange_query(call->exchange, "harness");
    const char *since = exchange_query(call->exchange, "since");
    return (!status || strcmp(status, task_status_word(task)) == 0) &&
           (!harness || (task->harness && strcmp(harness, task->harness) == 0)) &&
           (!since || (double)task->updated_ms / 1000 >= strtod(since, NULL));
}

static bool go_list(struct asking *asking)
{
    const char *text = exchange_query(asking->call->exchange, "limit");
    const long limit = text ? strtol(text, NULL, 10) : LIST_STANDARD;
    AUTO_FREE struct polar_task **tasks = all_tasks(asking->of);
    struct buffer body = {0};
    long count = 0;
    if (limit < 1 || limit > LIST_MAX) {
        asking_refuse_field(asking->call, "limit", "must be 1 to 1000");
        return true;
    }
    buffer_append_str(&body, "{\"tasks\":[");
    for (size_t i = 0; tasks && tasks[i] && count < limit; i++)
        if (is_wanted(asking->call, tasks[i])) {
            buffer_append_str(&body, count++ > 0 ? "," : "");
            append_task(tasks[i], &body);
        }
    buffer_append_str(&body, "]}");
    http_call_answer_json(asking->call, 200, &body);
    return true;
}

void task_list(struct http_call *call) { asking_begin(call, false, go_list); }

static bool go_overview(struct asking *asking)
{
    AUTO_FREE struct polar_task **tasks = all_tasks(asking->of);
    struct buffer body = {0};
    uint64_t pending = 0;
    buffer_append_str(&body, "{\"tasks\":{");
    for (size_t i = 0; tasks && tasks[i]; i++) {
        json_text_printf(&body, i > 0 ? ",%s:%s" : "%s:%s", tasks[i]->id ? tasks[i]->id : tasks[i]->group,
                         task_status_word(tasks[i]));
        pending += tasks[i]->total - tasks[i]->completed;
    }
    json_text_printf(&body, "},\"pipeline\":{\"pending_sessions\":%u},\"nodes\":{\"nodes\":[]}}", pending);
    http_call_answer_json(asking->call, 200, &body);
    return true;
}

void task_overview(struct http_call *call) { asking_begin(call, false, go_overview); }

/* ---- sessions --------------------------------------------------------------------------------------------- */

static const struct {
    const char *stage, *state, *status;
} statuses[] = {{"init", "leased", "INITIALIZING"}, {"init", NULL, "REGISTERED"},
                {"run", "leased", "RUNNING"},       {"run", NULL, "READY"},
                {"eval", "leased", "EVALUATING"},   {"eval", NULL, "POST_RUN"}};

static const char *live_status(const json_t *row)
{
    const char *stage = json_string_value(json_object_get(row, "stage"));
    const char *state = json_string_value(json_object_get(row, "state"));
    for (size_t i = 0; stage && state && i < sizeof(statuses) / sizeof(*statuses); i++)
        if (strcmp(statuses[i].stage, stage) == 0 && (!statuses[i].state || strcmp(statuses[i].state, state) == 0))
            return statuses[i].status;
    return "REGISTERED";
}

static const json_t *row_of(const json_t *rows, const char *group, unsigned sample)
{
    char name[BOOK_GROUP_SIZE + 16];
    snprintf(name, sizeof(name), "%s/%u", group, sample);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *rollout = json_string_value(json_object_get(row, "rollout"));
        if (rollout && strcmp(rollout, name) == 0)
            return row;
    }
    return NULL;
}

static void append_session(const struct polar_task *task, unsigned sample, const json_t *rows, struct buffer *out)
{
    const struct polar_session *session = &task->sessions[sample];
    char id[48];
    session_id_of(task->group, sample, id);
    json_text_printf(out, "{\"session_id\":%s,\"task_id\":%s,\"status\":%s", id, task->id ? task->id : task->group,
                     session->has_ended ? session->status : live_status(row_of(rows, task->group, sample)));
    if (session->has_ended) {
        buffer_append_str(out, ",\"node_id\":null,\"reward\":");
        append_mean(out, session->reward, session->has_reward);
        buffer_append_str(out, ",\"timing\":");
        session_append_timing(session->wait_ms, session->init_ms, session->run_ms, session->eval_ms, out);
        buffer_append_str(out, ",\"error\":null");
    }
    buffer_append_str(out, "}");
}

static void on_rows(struct http_call *call, const struct answer *answer)
{
    struct asking *asking = call->state;
    const struct polar_task *task = asking_task(asking);
    struct buffer body = {0};
    if (!task)
        return;
    json_t *all = answer->id == MSG_rollouts ? json_text_read(answer->as.rollouts.json) : NULL;
    json_text_printf(&body, "{\"task_id\":%s,\"sessions\":[", asking->id);
    for (unsigned i = 0; i < task->total; i++) {
        buffer_append_str(&body, i > 0 ? "," : "");
        append_session(task, i, json_object_get(all, "rollouts"), &body);
    }
    buffer_append_str(&body, "]}");
    json_decref(all);
    http_call_answer_json(call, 200, &body);
}

static bool go_sessions(struct asking *asking)
{
    const struct polar_task *task = asking_task(asking);
    if (!task)
        return true;
    struct msg_rollout_list in = {
        .group = slice_from_str(task->group), .has_group = true, .limit = LIST_MAX, .has_limit = true};
    asking->call->takes_refusals = true; /* a group of which nothing is at work */
    http_call_ask(asking->call, MSG_rollout_list, &in, on_rows);
    return true;
}

void task_sessions(struct http_call *call) { asking_begin(call, true, go_sessions); }
