#include "client/gateway/api/tail.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum {
    STEP_MS = 25,     /* who had no room, or no answer, goes on after so long */
    WAIT_MS = 10000,  /* for the broker's answer */
    SILENCE_MS = 5000 /* FEED says where a stream stands each second: without a word it is asked */
};

struct tail {
    struct tails *tails;
    struct identity *identity;
    char stream[80];
    struct list readers, link;
    struct list *following; /* while readers are told: who is next */
    struct listening feed;
    uint64_t next;             /* what it fetches next */
    struct msg_stream_head at; /* where the stream stands, as last heard */
    bool is_known, is_wanted;
    struct caller_ask ask;
    int64_t heard_ms;
};

struct tails {
    struct loop *loop;
    struct loop_timer *step;
    struct list each;
};

static bool send_fetch(struct tail *tail, struct caller_ask *ask, uint64_t from, unsigned limit)
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

/* ---- readers --------------------------------------------------------------------------------------- */

static void fail_reader(struct tail_reader *reader, const struct msg_refused *refused)
{
    const struct reader_plan plan = reader->plan;
    tail_leave(reader);
    plan.failed(plan.arg, refused);
}

static void tell(struct tail_reader *reader, struct told *told)
{
    if (told->message->seq < reader->next)
        return;
    reader->next = told->message->seq + 1;
    reader->plan.took(reader->plan.arg, told);
}

static void told_finish(struct told *told)
{
    buffer_finish(&told->whole);
    buffer_finish(&told->summary);
}

static bool has_room(const struct tail_reader *reader)
{
    return !reader->plan.has_room || reader->plan.has_room(reader->plan.arg);
}

/* It lacks what lies between it and the tail: that it fetches by itself. */
static void go_on(struct tail_reader *reader)
{
    struct tail *tail = reader->tail;
    if (reader->is_live || reader->ask.caller || !tail->is_known || !has_room(reader))
        return;
    if (reader->next == 0)
        reader->next = tail->at.first;
    if (reader->next >= tail->next) {
        reader->is_live = true;
        if (reader->plan.stands)
            reader->plan.stands(reader->plan.arg, &tail->at);
    } else {
        send_fetch(tail, &reader->ask, reader->next, TAIL_FETCH);
    }
}

static void on_reader_answer(void *arg, const struct answer *answer)
{
    struct tail_reader *reader = arg;
    struct told told = {0};
    if (!answer && caller_refused(reader->tail->identity->caller))
        fail_reader(reader, NULL);
    else if (answer && answer->id == MSG_refused)
        fail_reader(reader, &answer->as.refused);
    else if (answer && answer->id == MSG_stream_head)
        go_on(reader);
    else if (answer && answer->id == MSG_trajectory && !has_room(reader))
        caller_forget(&reader->ask); /* the rest is asked for again once there is room */
    else if (answer && answer->id == MSG_trajectory) {
        told.message = &answer->as.trajectory;
        tell(reader, &told);
        told_finish(&told);
    }
}

/* ---- the tail ------------------------------------------------------------------------------------------- */

static struct tail_reader *next_reader(struct tail *tail)
{
    struct list *at = tail->following;
    if (at == &tail->readers)
        return NULL;
    tail->following = at->next;
    return container_of(at, struct tail_reader, link);
}

static void drop_tail(struct tail *tail)
{
    list_remove(&tail->link);
    topics_leave(&tail->feed);
    caller_forget(&tail->ask);
    tail->identity->uses--;
    free(tail);
}

/* Callbacks may have let the last reader go. */
static void end_telling(struct tail *tail)
{
    tail->following = NULL;
    if (list_is_empty(&tail->readers))
        drop_tail(tail);
}

static void begin_telling(struct tail *tail) { tail->following = tail->readers.next; }

/* Who has no room falls behind, and fetches by itself what it lacks. */
static bool can_be_told(struct tail_reader *reader)
{
    reader->is_live = reader->is_live && has_room(reader);
    return reader->is_live;
}

static void tell_live(struct tail *tail, const struct msg_trajectory *message)
{
    struct told told = {.message = message};
    if (message->seq != tail->next)
        return;
    tail->next++;
    begin_telling(tail);
    for (struct tail_reader *reader; (reader = next_reader(tail));)
        if (can_be_told(reader))
            tell(reader, &told);
    told_finish(&told);
    end_telling(tail);
}

static void go_on_all(struct tail *tail)
{
    begin_telling(tail);
    for (struct tail_reader *reader; (reader = next_reader(tail));)
        go_on(reader);
    end_telling(tail);
}

static void fail_all(struct tail *tail, const struct msg_refused *refused)
{
    begin_telling(tail);
    for (struct tail_reader *reader; (reader = next_reader(tail));)
        fail_reader(reader, refused);
    end_telling(tail);
}

static void fetch(struct tail *tail)
{
    if (tail->ask.caller)
        tail->is_wanted = true;
    else if (!tail->is_known)
        send_fetch(tail, &tail->ask, INT64_MAX, 1);
    else
        send_fetch(tail, &tail->ask, tail->next, TAIL_FETCH);
}

/* A ledger that has less than was read is another one, an older back-up: what it has from there on is new. */
static void take_head(struct tail *tail, const struct msg_stream_head *head)
{
    tail->heard_ms = clock_ms();
    tail->at = *head;
    tail->at.stream = slice_from_str(tail->stream);
    if (!tail->is_known || tail->next > head->head + 1)
        tail->next = head->head + 1;
    tail->is_known = true;
    const bool is_more = tail->is_wanted || tail->next <= head->head;
    tail->is_wanted = false;
    if (is_more)
        fetch(tail);
    go_on_all(tail);
}

static void on_answer(void *arg, const struct answer *answer)
{
    struct tail *tail = arg;
    static const struct msg_stream_head nothing = {.first = 1};
    if (!answer && caller_refused(tail->identity->caller))
        fail_all(tail, NULL);
    else if (answer && answer->id == MSG_trajectory)
        tell_live(tail, &answer->as.trajectory);
    else if (answer && answer->id == MSG_stream_head)
        take_head(tail, &answer->as.stream_head);
    else if (answer && answer->id == MSG_refused &&
             slice_is(answer->as.refused.reason, refusal_wire(REFUSAL_UNKNOWN_STREAM)))
        take_head(tail, &nothing);
    else if (answer && answer->id == MSG_refused)
        fail_all(tail, &answer->as.refused);
}

static void on_feed(void *arg, struct slice body)
{
    struct tail *tail = arg;
    enum message_id id;
    union any_message in;
    struct refusal no;
    tail->heard_ms = clock_ms();
    if (!message_peek(body, &id, &no) || (id != MSG_stream_head && id != MSG_trajectory))
        return;
    if (id == MSG_stream_head && message_decode(id, body, &in, &no) && in.stream_head.head < tail->next)
        return;
    fetch(tail);
}

static struct tail *find_tail(struct tails *tails, struct identity *identity, const char *stream)
{
    struct tail *tail;
    char topic[TOPIC_SIZE];
    LIST_EACH(tail, &tails->each, link)
        if (tail->identity == identity && strcmp(tail->stream, stream) == 0)
            return tail;
    tail = calloc(1, sizeof(*tail));
    if (!tail)
        return NULL;
    *tail = (struct tail){.tails = tails, .identity = identity, .heard_ms = clock_ms()};
    tail->ask.answered = on_answer;
    tail->feed.heard = on_feed;
    tail->ask.arg = tail->feed.arg = tail;
    snprintf(tail->stream, sizeof(tail->stream), "%s", stream);
    snprintf(topic, sizeof(topic), "t/%s/", stream);
    list_init(&tail->readers);
    list_push_back(&tails->each, &tail->link);
    identity->uses++;
    if (!topics_listen(identity->topics, &tail->feed, topic)) {
        drop_tail(tail);
        return NULL;
    }
    fetch(tail);
    return tail;
}

bool tail_read(struct tails *tails, struct identity *identity, const char *stream, uint64_t from,
               const struct reader_plan *plan, struct tail_reader *reader)
{
    struct tail *tail = find_tail(tails, identity, stream);
    if (!tail)
        return false;
    *reader = (struct tail_reader){.tail = tail, .plan = *plan, .next = from};
    reader->ask.answered = on_reader_answer;
    reader->ask.arg = reader;
    list_push_back(&tail->readers, &reader->link);
    return true;
}

void tail_leave(struct tail_reader *reader)
{
    struct tail *tail = take_ptr(&reader->tail);
    if (!tail)
        return;
    caller_forget(&reader->ask);
    if (tail->following == &reader->link)
        tail->following = reader->link.next;
    list_remove(&reader->link);
    if (list_is_empty(&tail->readers) && !tail->following)
        drop_tail(tail);
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

static void on_step(void *arg)
{
    struct tails *tails = arg;
    struct tail *tail;
    const int64_t now_ms = clock_ms();
    tails->step = loop_after(tails->loop, STEP_MS, on_step, tails);
    LIST_EACH(tail, &tails->each, link) {
        if (!tail->ask.caller && (!tail->is_known || now_ms - tail->heard_ms > SILENCE_MS)) {
            tail->heard_ms = now_ms;
            fetch(tail);
        }
        go_on_all(tail);
    }
}

struct tails *tails_open(struct loop *loop)
{
    struct tails *tails = calloc(1, sizeof(*tails));
    if (!tails)
        return NULL;
    tails->loop = loop;
    list_init(&tails->each);
    tails->step = loop_after(loop, STEP_MS, on_step, tails);
    if (!tails->step)
        tails_close(&tails);
    return tails;
}

static void leave_all(struct tail *tail)
{
    struct tail_reader *reader;
    tail->following = &tail->readers; /* it goes last */
    LIST_EACH(reader, &tail->readers, link)
        tail_leave(reader);
}

void tails_close(struct tails **handle)
{
    struct tails *tails = take_ptr(handle);
    struct tail *tail;
    if (!tails)
        return;
    loop_cancel(tails->loop, &tails->step);
    LIST_EACH(tail, &tails->each, link) {
        leave_all(tail);
        drop_tail(tail);
    }
    free(tails);
}
