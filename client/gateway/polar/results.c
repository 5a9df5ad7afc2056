#include "client/gateway/polar/results.h"

#include <stdio.h>

#include "client/gateway/polar/session_result.h"
#include "client/lib/stream/trajectory_view.h"

static void go_on(struct results *results);

static void begin(struct results *results, const struct polar_task *task)
{
    results->was_over = task_is_over(task);
    results->next = results->count = 0;
    buffer_clear(&results->text);
    go_on(results);
}

struct polar_task *results_task(const struct results *results)
{
    struct polar_task *task = tasks_find(results->of, results->base);
    return task && task->number == results->number ? task : NULL;
}

static void append(struct results *results, const struct msg_trajectory *trajectory, unsigned early_stop)
{
    struct trajectory_view view = {0};
    struct refusal no;
    json_t *metadata = json_text_read(trajectory->metadata);
    if (trajectory_view_read(&view, trajectory, &no)) {
        buffer_append_str(&results->text, results->count++ > 0 ? "," : "");
        session_result_append(&view.out, json_object_get(metadata, "polar"), early_stop, &results->text);
    }
    json_decref(metadata);
    trajectory_view_finish(&view);
}

static bool is_to_be_asked(const struct polar_session *session) { return session->has_ended && !session->is_lost; }

static void on_got(void *arg, const struct answer *answer)
{
    struct results *results = arg;
    const struct polar_task *task = results_task(results);
    /* Unknown, and not forgotten: with its ledger, and will soon be known to be lost. */
    if (!task || !answer || (answer->id == MSG_refused && http_call_status_of(answer->as.refused.reason) == 404)) {
        results->ended(results->arg, false);
        return;
    }
    if (answer->id == MSG_trajectory)
        append(results, &answer->as.trajectory, task->is_early ? task->early_stop : 0);
    results->next++;
    go_on(results);
}

static void go_on(struct results *results)
{
    const struct polar_task *task = results_task(results);
    struct caller *caller = results->of->identity->caller;
    char rollout[BOOK_GROUP_SIZE + 16];
    struct refusal no;
    while (task && results->next < task->total && !is_to_be_asked(&task->sessions[results->next])) {
        if (task->sessions[results->next].is_lost) {
            buffer_append_str(&results->text, results->count++ > 0 ? "," : "");
            session_result_append_lost(task, results->next, &results->text);
        }
        results->next++;
    }
    if (task && results->next >= task->total && task_is_over(task) && !results->was_over) {
        begin(results, task);
        return;
    }
    if (!task || results->next >= task->total) {
        results->ended(results->arg, task != NULL && !results->text.failed);
        return;
    }
    snprintf(rollout, sizeof(rollout), "%s/%u", task->group, results->next);
    const struct msg_rollout_get in = {.tag = caller_next_tag(caller), .rollout = slice_from_str(rollout)};
    results->ask.answered = on_got;
    results->ask.arg = results;
    if (!caller_ask(caller, &results->ask, MSG_rollout_get, &in, in.tag, HTTP_CALL_WAIT_MS, &no))
        results->ended(results->arg, false);
}

void results_begin(struct results *results, const struct polar_task *task, void (*ended)(void *, bool), void *arg)
{
    results->of = task->of;
    snprintf(results->base, sizeof(results->base), "%s", task->base);
    results->number = task->number;
    results->ended = ended;
    results->arg = arg;
    begin(results, task);
}

void results_finish(struct results *results)
{
    caller_forget(&results->ask);
    buffer_finish(&results->text);
}

void results_append_status(const struct results *results, const struct polar_task *task, const char *id,
                           struct buffer *out)
{
    json_text_printf(out, "{\"task_id\":%s,\"status\":%s,\"total_sessions\":%u,\"completed_sessions\":%u,\"results\":[",
                     task->id ? task->id : id, task_status_word(task), (uint64_t)task->total, (uint64_t)results->count);
    buffer_append(out, results->text.data, results->text.len);
    buffer_append_str(out, "],\"result_paths\":[]}");
}
