#include "client/gateway/polar/called_back.h"

#include <stdlib.h>

#include "client/gateway/door/engines.h"
#include "client/gateway/outgoing/outgoing.h"
#include "client/gateway/polar/results.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum { CALLBACK_MS = 10000 };

struct calling {
    struct results results;
    struct outgoing_post post;
    struct loop_soon soon; /* frees it outside of what it hears */
};

static void on_soon(void *arg)
{
    struct calling *calling = arg;
    calling->results.of->users--;
    results_finish(&calling->results);
    free(calling);
}

static void finish(struct calling *calling)
{
    calling->soon = (struct loop_soon){.run = on_soon, .arg = calling};
    loop_post(calling->results.of->book->gateway->loop, &calling->soon);
}

static void on_posted(void *arg, int status, const char *why, struct slice answer)
{
    (void)answer;
    struct calling *calling = arg;
    struct polar_task *task = results_task(&calling->results);
    const bool is_taken = status >= 200 && status < 300;
    /* Not before: who is killed in between posts it again, and nobody waits for what was never sent. */
    if (task)
        runs_note(task->of->book->runs, task->group);
    if (task && is_taken && !task->had_ms)
        task->had_ms = clock_ms();
    if (!is_taken)
        log_event(LOG_WARN, "gateway.callback", "group=%s-%u status=%d error=\"%s\" action=given-up",
                  calling->results.base, calling->results.number, status, why);
    finish(calling);
}

static void on_results(void *arg, bool is_whole)
{
    struct calling *calling = arg;
    struct polar_task *task = results_task(&calling->results);
    struct buffer body = {0};
    if (!task || !is_whole || !task->callback_url || !task_is_over(task)) {
        if (task && task_is_over(task) && !is_whole)
            task->is_call_due = true;
        finish(calling);
        return;
    }
    results_append_status(&calling->results, task, task->group, &body);
    const struct outgoing_plan plan = {.url = task->callback_url,
                                       .rules = task->of->book->gateway->settings->callbacks,
                                       .wait_ms = CALLBACK_MS,
                                       .ended = on_posted,
                                       .arg = calling};
    if (!outgoing_post(task->of->book->outgoing, &plan, &body, &calling->post)) {
        buffer_finish(&body);
        on_posted(calling, 0, "too much is under way", slice_of("", 0));
    }
}

void called_back(struct polar_task *task)
{
    struct fail fail;
    task->is_call_due = false;
    if (!task->callback_url || runs_has_noted(task->of->book->runs, task->group))
        return;
    /* It is read from the task's metadata, which its owner may have written by another way. */
    if (!address_allow(task->of->book->gateway->settings->callbacks, task->callback_url, "--callback", &fail)) {
        log_event(LOG_WARN, "gateway.callback", "group=%s error=\"%s\" action=given-up", task->group, fail.text);
        return;
    }
    struct calling *calling = calloc(1, sizeof(*calling));
    if (!calling)
        return;
    task->of->users++;
    results_begin(&calling->results, task, on_results, calling);
}
