#include "client/gateway/polar/doubts.h"

#include <stdio.h>
#include <stdlib.h>

static void doubt(struct polar_task *task)
{
    task->is_doubtful = true;
    task->doubt_next = 0;
}

void doubts_begin(struct polar_of *of)
{
    size_t at = 0;
    for (struct polar_task *task; (task = table_next(&of->tasks, &at));)
        if (!task_is_over(task) && !task->is_asked)
            doubt(task);
}

/* ---- another ledger ---------------------------------------------------------------------------------------- */

static struct polar_task *find_had(const struct polar_of *of)
{
    size_t at = 0;
    for (struct polar_task *task; (task = table_next(&of->tasks, &at));)
        if (task->had_ms)
            return task;
    return NULL;
}

static void drop_what_ended(struct polar_of *of)
{
    struct polar_ended *ended;
    struct polar_task *task;
    LIST_EACH(ended, &of->ended, link)
        free(ended);
    list_init(&of->ended);
    LIST_EACH(task, &of->gone, older)
        task_drop(task);
    while ((task = find_had(of)))
        task_drop(task);
}

void doubts_begin_anew(struct polar_of *of)
{
    size_t at = 0;
    caller_forget(&of->ack);
    drop_what_ended(of);
    for (struct polar_task *task; (task = table_next(&of->tasks, &at));) {
        if (!task->is_asked)
            doubt(task);
        task_begin_anew(task);
    }
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

static void ask(struct polar_task *task);

static bool is_unknown(const struct answer *answer)
{
    const int status = answer->id == MSG_refused ? http_call_status_of(answer->as.refused.reason) : 0;
    return status == 404 || status == 410;
}

static void on_answer(void *arg, const struct answer *answer)
{
    struct polar_task *task = arg;
    if (!answer || (answer->id == MSG_refused && answer->as.refused.has_retry_after_ms))
        return; /* by a later sweep */
    const unsigned sample = task->doubt_next++;
    if (is_unknown(answer) && !task->sessions[sample].has_ended)
        task->of->lose(task, sample);
    ask(task);
}

/* What was to be cancelled may not be, in this ledger. */
static void end(struct polar_task *task)
{
    task->is_doubtful = false;
    if (!task_is_over(task) && (task->status == TASK_CANCELLING || task->is_early))
        task_cancel(task);
}

static void ask(struct polar_task *task)
{
    struct caller *caller = task->of->identity->caller;
    char rollout[BOOK_GROUP_SIZE + 16];
    struct refusal no;
    while (task->doubt_next < task->total && task->sessions[task->doubt_next].has_ended)
        task->doubt_next++;
    if (task->doubt_next >= task->total) {
        end(task);
        return;
    }
    snprintf(rollout, sizeof(rollout), "%s/%u", task->group, task->doubt_next);
    const struct msg_rollout_get in = {.tag = caller_next_tag(caller), .rollout = slice_from_str(rollout)};
    task->ask.answered = on_answer;
    task->ask.arg = task;
    caller_ask(caller, &task->ask, MSG_rollout_get, &in, in.tag, HTTP_CALL_WAIT_MS, &no);
}

void doubts_sweep(struct polar_of *of, void (*lose)(struct polar_task *task, unsigned sample))
{
    size_t at = 0, left = DOUBTS_A_SWEEP;
    of->lose = lose;
    for (struct polar_task *task; of->is_told && left > 0 && (task = table_next(&of->tasks, &at));)
        if (task->is_doubtful && !task->is_asked && !task->ask.caller) {
            ask(task);
            left--;
        }
}
