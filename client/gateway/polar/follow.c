#include "client/gateway/polar/follow.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/polar/called_back.h"
#include "client/gateway/polar/doubts.h"
#include "client/gateway/polar/events.h"
#include "client/gateway/polar/session_result.h"
#include "client/gateway/record/main_trace.h"
#include "client/lib/stream/trajectory_view.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { LIST_LIMIT = 1000, ACK_WAIT_MS = 10000 };

/* ---- names of groups ------------------------------------------------------------------------------------ */

/* "polar-DIGEST-N": the task of that name, made where it is not known. NULL: it is none of ours, or older. */
static struct polar_task *task_of(struct polar_of *of, struct slice group, unsigned total)
{
    char base[BOOK_GROUP_SIZE];
    if (group.len >= sizeof(base) || group.len < 8 || memcmp(group.data, "polar-", 6) != 0)
        return NULL;
    snprintf(base, sizeof(base), "%.*s", SLICE_ARG(group));
    char *dash = strrchr(base, '-'), *end;
    const unsigned long number = strtoul(dash + 1, &end, 10);
    if (*end || end == dash + 1 || dash - base >= BOOK_BASE_SIZE || number > UINT32_MAX)
        return NULL;
    *dash = '\0';
    struct polar_task *task = tasks_find(of, base);
    if (task && task->number == number)
        return task_grow(task, total) ? task : NULL;
    return !task || task->number < number ? tasks_add(of, base, (unsigned)number, total) : NULL;
}

/* ---- what was at work ------------------------------------------------------------------------------------- */

static void add_listed(struct polar_of *of, const json_t *row)
{
    const char *rollout = json_string_value(json_object_get(row, "rollout"));
    const char *slash = rollout ? strrchr(rollout, '/') : NULL;
    struct polar_task *task = slash ? task_of(of, slice_of(rollout, (size_t)(slash - rollout)),
                                              (unsigned)strtoul(slash + 1, NULL, 10) + 1)
                                    : NULL;
    if (task)
        task->updated_ms = clock_wall_ms();
}

static void on_list(void *arg, const struct answer *answer)
{
    struct polar_of *of = arg;
    json_t *all = answer && answer->id == MSG_rollouts ? json_text_read(answer->as.rollouts.json) : NULL;
    const json_t *rows = json_object_get(all, "rollouts");
    for (size_t i = 0; i < json_array_size(rows); i++)
        add_listed(of, json_array_get(rows, i));
    json_decref(all);
    of->is_listed = answer != NULL; /* a stream that is not known yet has none */
    of->has_failed |= answer == NULL;
}

static void list(struct polar_of *of)
{
    struct caller *caller = of->identity->caller;
    struct refusal no;
    const struct msg_rollout_list in = {.tag = caller_next_tag(caller),
                                        .stream = slice_from_str(of->stream),
                                        .has_stream = true,
                                        .limit = LIST_LIMIT,
                                        .has_limit = true};
    caller_forget(&of->list_ask);
    of->list_ask.answered = on_list;
    of->list_ask.arg = of;
    if (!caller_ask(caller, &of->list_ask, MSG_rollout_list, &in, in.tag, HTTP_CALL_WAIT_MS, &no))
        of->is_listed = true;
}

/* ---- rollouts that end ------------------------------------------------------------------------------------- */

static void note_session(struct polar_task *task, struct polar_session *session, const struct sluice_trajectory *t)
{
    *session = (struct polar_session){.has_ended = true,
                                      .status = session_status_of(t),
                                      .is_usable = session_is_usable(t),
                                      .seq = t->seq,
                                      .turns = trajectory_sampled_turns(t),
                                      .traces = t->trace_count,
                                      .wait_ms = t->wait_ms,
                                      .init_ms = t->init_ms,
                                      .run_ms = t->run_ms,
                                      .eval_ms = t->eval_ms};
    session->has_reward = session_reward_of(t, task->evaluator, &session->reward);
    session->is_error = strcmp(session->status, "COMPLETED") != 0;
    task->completed++;
    task->errored += session->is_error;
    task->usable += session->is_usable;
    task->updated_ms = (int64_t)t->ended_ms;
}

/* Cancelled by a gateway before this one: of which nobody is left who knows why. */
static void guess_why(struct polar_task *task, const struct sluice_trajectory *t)
{
    if (task->of->is_told || strcmp(t->outcome, "cancelled") != 0 || task->status != TASK_RUNNING || task->is_early)
        return;
    if (task->early_stop && task->usable >= task->early_stop)
        task->is_early = true;
    else
        task->status = TASK_CANCELLING;
}

static void end_task(struct polar_task *task)
{
    task->status = task->status == TASK_CANCELLING ? TASK_CANCELLED : TASK_COMPLETED;
    if (task->of->is_told)
        events_task_completed(task);
    if (task->status == TASK_COMPLETED)
        called_back(task);
}

static void tell_ended(struct polar_task *task, unsigned sample)
{
    const struct polar_session *session = &task->sessions[sample];
    if (task->of->is_told) { /* else it is old */
        events_session(task, sample, session->status);
        events_task_updated(task);
    }
    if (task->completed == task->total && !task_is_over(task)) {
        end_task(task);
    } else if (task->early_stop && task->usable >= task->early_stop && !task->is_early &&
               task->status == TASK_RUNNING) {
        task->is_early = true;
        task_cancel(task);
    }
}

static void end_session(struct polar_task *task, unsigned sample, const struct sluice_trajectory *t)
{
    struct polar_session *session = &task->sessions[sample];
    if (session->has_ended)
        return;
    note_session(task, session, t);
    guess_why(task, t);
    tell_ended(task, sample);
}

/* The broker does not know it: its ledger was replaced. */
static void lose_session(struct polar_task *task, unsigned sample)
{
    task->sessions[sample] = (struct polar_session){
        .has_ended = true, .is_error = true, .is_lost = true, .status = "ERROR"};
    task->completed++;
    task->errored++;
    task->updated_ms = clock_wall_ms();
    tell_ended(task, sample);
}

static void on_trajectory(void *arg, struct told *told)
{
    struct polar_of *of = arg;
    const struct msg_trajectory *message = told->message;
    struct trajectory_view view = {0};
    struct refusal no;
    struct polar_ended *ended = calloc(1, sizeof(*ended));
    const uint64_t total = message->has_group_size ? message->group_size : message->sample + 1;
    struct polar_task *task = task_of(of, message->group, (unsigned)total);
    if (!ended)
        return; /* it is acknowledged with the next one */
    ended->seq = message->seq;
    ended->task = task;
    list_push_back(&of->ended, &ended->link);
    if (!task)
        return;
    task->unacked++;
    task->is_asked = task->is_lost = false;
    json_t *metadata = json_text_read(message->metadata);
    task_tell(task, json_object_get(metadata, "polar"));
    json_decref(metadata);
    if (trajectory_view_read(&view, message, &no))
        end_session(task, (unsigned)message->sample, &view.out);
    trajectory_view_finish(&view);
}

static void on_stands(void *arg, const struct msg_stream_head *head)
{
    (void)head;
    ((struct polar_of *)arg)->is_told = true;
}

static void on_failed(void *arg, const struct msg_refused *refused)
{
    struct polar_of *of = arg;
    of->has_failed = true;
    of->is_told = refused && refused->reason.len > 0; /* a stream that does not exist yet has nothing to tell */
}

static void on_restarted(void *arg) { doubts_begin(arg); }

static uint64_t on_replaced(void *arg, const struct msg_stream_head *head)
{
    struct polar_of *of = arg;
    doubts_begin_anew(of);
    of->is_told = of->is_listed = false;
    list(of);
    return head->first;
}

bool follow_begin(struct polar_of *of)
{
    const struct reader_plan plan = {.took = on_trajectory,
                                     .stands = on_stands,
                                     .failed = on_failed,
                                     .restarted = on_restarted,
                                     .replaced = on_replaced,
                                     .arg = of};
    const struct polar_ended *last = list_is_empty(&of->ended) ? NULL
                                                               : container_of(of->ended.prev, struct polar_ended, link);
    of->has_failed = false;
    list(of);
    tail_leave(&of->reader);
    return tail_read(of->book->tails, of->identity, of->stream, last ? last->seq + 1 : 0, &plan, &of->reader);
}

/* ---- submits that were not answered ------------------------------------------------------------------ */

static void on_came(void *arg, const struct answer *answer)
{
    struct polar_task *task = arg;
    json_t *told = answer && answer->id == MSG_rollouts ? json_text_read(answer->as.rollouts.json) : NULL;
    const bool is_here = json_integer_value(json_object_get(told, "matched")) > 0;
    json_decref(told);
    if (!answer || !task->is_lost)
        return;
    if (is_here || task->completed > 0)
        task->is_asked = task->is_lost = false;
    else
        task_drop(task);
}

static void ask_whether_it_came(struct polar_task *task)
{
    struct caller *caller = task->of->identity->caller;
    struct refusal no;
    const struct msg_rollout_list in = {.tag = caller_next_tag(caller),
                                        .group = slice_from_str(task->group),
                                        .has_group = true,
                                        .limit = 1,
                                        .has_limit = true};
    task->ask.answered = on_came;
    task->ask.arg = task;
    caller_ask(caller, &task->ask, MSG_rollout_list, &in, in.tag, HTTP_CALL_WAIT_MS, &no);
}

/* ---- what was had ------------------------------------------------------------------------------------------------ */

static void let_go(struct polar_task *task, int64_t now_ms)
{
    const bool is_had = task->had_ms && now_ms - task->had_ms > BOOK_KEEP_MS;
    const bool is_old = clock_wall_ms() - task->updated_ms > BOOK_FORGET_MS;
    task->is_gone |= task_is_over(task) && (is_had || is_old);
}

/* Its last trajectory is acknowledged. */
static void forget(struct polar_task *task)
{
    runs_remove_note(task->of->book->runs, task->group);
    task_drop(task);
}

static void on_ack(void *arg, const struct answer *answer)
{
    struct polar_of *of = arg;
    struct polar_ended *ended;
    if (!answer || answer->id != MSG_done)
        return; /* asked again by the next sweep */
    LIST_EACH(ended, &of->ended, link) {
        struct polar_task *task = ended->task;
        if (ended->seq > of->acking)
            break;
        list_remove(&ended->link);
        free(ended);
        if (task && --task->unacked == 0 && task->is_gone)
            forget(task);
    }
}

static void acknowledge(struct polar_of *of)
{
    struct caller *caller = of->identity->caller;
    struct polar_ended *ended;
    struct refusal no;
    uint64_t seq = 0;
    LIST_EACH(ended, &of->ended, link) {
        if (ended->task && !ended->task->is_gone)
            break;
        seq = ended->seq;
    }
    if (seq == 0 || of->ack.caller)
        return;
    const struct msg_stream_ack in = {.tag = caller_next_tag(caller), .stream = slice_from_str(of->stream), .seq = seq};
    of->acking = seq;
    of->ack.answered = on_ack;
    of->ack.arg = of;
    caller_ask(caller, &of->ack, MSG_stream_ack, &in, in.tag, ACK_WAIT_MS, &no);
}

/* Of what no trajectory is kept: its sessions were lost with a ledger. */
static void forget_lost(struct polar_of *of)
{
    size_t at = 0;
    for (struct polar_task *task; (task = table_next(&of->tasks, &at));)
        if (task->is_gone && task->unacked == 0) {
            forget(task);
            at = 0;
        }
}

void follow_sweep(struct polar_of *of, int64_t now_ms)
{
    size_t at = 0;
    for (struct polar_task *task; (task = table_next(&of->tasks, &at));) {
        let_go(task, now_ms);
        if (task->is_lost && !task->ask.caller)
            ask_whether_it_came(task);
        if (task->is_call_due)
            called_back(task);
    }
    forget_lost(of);
    doubts_sweep(of, lose_session);
    acknowledge(of);
    if (of->has_failed && !follow_begin(of))
        of->has_failed = true;
}
