#include "client/gateway/api/tail_reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"

enum { WAIT_MS = 10000 /* for the broker's answer */ };

bool tail_fetch(struct tail *tail, struct caller_ask *ask, uint64_t from, unsigned limit)
{
    struct caller *caller = tail->identity->caller;
    struct refusal no;
    const struct msg_stream_fetch in = {.tag = caller_next_tag(caller),
                                        .stream = slice_from_str(tail->stream),
                                        .from = from,
                                        .limit = limit,
                                        .has_limit = true};
    return caller_ask(caller, ask, MSG_stream_fetch, &in, in.tag, WAIT_MS, &no);
}

void tail_drop(struct tail *tail)
{
    list_remove(&tail->link);
    topics_leave(&tail->feed);
    caller_forget(&tail->ask);
    tail->identity->uses--;
    free(tail);
}

void reader_leave(struct tail_reader *reader)
{
    struct tail *tail = take_ptr(&reader->tail);
    if (!tail)
        return;
    caller_forget(&reader->ask);
    if (tail->following == &reader->link)
        tail->following = reader->link.next;
    list_remove(&reader->link);
    if (list_is_empty(&tail->readers) && tail->holds == 0)
        tail_drop(tail);
}

/* ---- what it is told --------------------------------------------------------------------------------- */

void tail_told_finish(struct told *told)
{
    buffer_finish(&told->whole);
    buffer_finish(&told->summary);
}

bool mark_is(const struct tail_mark *mark, const struct msg_trajectory *message)
{
    return mark->seq == message->seq && mark->ended_ms == message->ended_ms &&
           slice_is(message->rollout, mark->rollout);
}

static void note_newest(struct tail *tail, const struct msg_trajectory *message)
{
    if (message->seq <= tail->newest.seq)
        return;
    tail->newest.seq = message->seq;
    tail->newest.ended_ms = message->ended_ms;
    snprintf(tail->newest.rollout, sizeof(tail->newest.rollout), "%.*s", SLICE_ARG(message->rollout));
}

void reader_tell(struct tail_reader *reader, struct told *told)
{
    if (told->message->seq < reader->next)
        return;
    reader->next = told->message->seq + 1;
    note_newest(reader->tail, told->message);
    reader->plan.took(reader->plan.arg, told);
}

void reader_fail(struct tail_reader *reader, const struct msg_refused *refused)
{
    const struct reader_plan plan = reader->plan;
    reader_leave(reader);
    plan.failed(plan.arg, refused);
}

static bool has_room(const struct tail_reader *reader)
{
    return !reader->plan.has_room || reader->plan.has_room(reader->plan.arg);
}

bool reader_can_be_told(struct tail_reader *reader)
{
    reader->is_live = reader->is_live && has_room(reader);
    return reader->is_live;
}

/* ---- what it fetches --------------------------------------------------------------------------------- */

void reader_go_on(struct tail_reader *reader)
{
    struct tail *tail = reader->tail;
    if (reader->is_live || reader->ask.caller || !tail->is_known || !has_room(reader))
        return;
    if (reader->next == 0)
        reader->next = tail->at.first;
    if (reader->next >= tail->next && !reader->is_doubtful) {
        reader->is_live = true;
        if (reader->plan.stands)
            reader->plan.stands(reader->plan.arg, &tail->at);
    } else {
        tail_fetch(tail, &reader->ask, reader->next, TAIL_FETCH);
    }
}

void reader_restart(struct tail_reader *reader)
{
    if (reader->plan.restarted)
        reader->plan.restarted(reader->plan.arg);
}

void reader_replace(struct tail_reader *reader)
{
    struct tail *tail = reader->tail;
    caller_forget(&reader->ask);
    reader->is_live = reader->is_doubtful = false;
    reader->next = 0;
    const uint64_t next = reader->plan.replaced ? reader->plan.replaced(reader->plan.arg, &tail->at) : 0;
    if (reader->tail)
        reader->next = next;
}

/* Of a new start nothing is believed before the tail has looked whose ledger it has. */
static void take_head(struct tail_reader *reader, const struct msg_stream_head *head)
{
    struct tail *tail = reader->tail;
    if (seen_is_new_start(&tail->seen, head)) {
        tail->is_wanted = true;
        return;
    }
    if (reader->is_doubtful && head->head + 1 < reader->next) {
        reader_replace(reader);
        return;
    }
    reader->is_doubtful = false;
    tail->sure = tail->newest;
    tail->is_wanted |= head->head >= tail->next;
    reader_go_on(reader);
}

static void on_answer(void *arg, const struct answer *answer)
{
    struct tail_reader *reader = arg;
    struct told told = {0};
    if (!answer && caller_refused(reader->tail->identity->caller))
        reader_fail(reader, NULL);
    else if (answer && answer->id == MSG_refused)
        reader_fail(reader, &answer->as.refused);
    else if (answer && answer->id == MSG_stream_head)
        take_head(reader, &answer->as.stream_head);
    else if (answer && answer->id == MSG_trajectory && !has_room(reader))
        caller_forget(&reader->ask); /* the rest is asked for again once there is room */
    else if (answer && answer->id == MSG_trajectory) {
        told.message = &answer->as.trajectory;
        reader_tell(reader, &told);
        tail_told_finish(&told);
    }
}

void reader_init(struct tail_reader *reader, struct tail *tail, const struct reader_plan *plan, uint64_t from)
{
    *reader = (struct tail_reader){.tail = tail, .plan = *plan, .next = from, .is_doubtful = plan->has_read};
    reader->ask.answered = on_answer;
    reader->ask.arg = reader;
    list_push_back(&tail->readers, &reader->link);
}
