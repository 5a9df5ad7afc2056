#include "client/gateway/api/tail.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/api/tail_reader.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    STEP_MS = 25,     /* who had no room, or no answer, goes on after so long */
    SILENCE_MS = 5000 /* FEED says where a stream stands each second: without a word it is asked */
};

/* ---- telling readers ------------------------------------------------------------------------------------ */

static struct tail_reader *next_reader(struct tail *tail)
{
    struct list *at = tail->following;
    if (at == &tail->readers)
        return NULL;
    tail->following = at->next;
    return container_of(at, struct tail_reader, link);
}

static void hold(struct tail *tail) { tail->holds++; }

/* Callbacks may have let the last reader go. */
static void let_go(struct tail *tail)
{
    if (--tail->holds == 0 && list_is_empty(&tail->readers))
        tail_drop(tail);
}

static void begin_telling(struct tail *tail)
{
    hold(tail);
    tail->following = tail->readers.next;
}

static void end_telling(struct tail *tail)
{
    tail->following = NULL;
    let_go(tail);
}

static void tell_live(struct tail *tail, const struct msg_trajectory *message)
{
    struct told told = {.message = message};
    if (message->seq != tail->next)
        return;
    tail->next++;
    begin_telling(tail);
    for (struct tail_reader *reader; (reader = next_reader(tail));)
        if (reader_can_be_told(reader))
            reader_tell(reader, &told);
    tail_told_finish(&told);
    end_telling(tail);
}

static void tell_each(struct tail *tail, void (*tell)(struct tail_reader *reader))
{
    begin_telling(tail);
    for (struct tail_reader *reader; (reader = next_reader(tail));)
        tell(reader);
    end_telling(tail);
}

static void fail_all(struct tail *tail, const struct msg_refused *refused)
{
    begin_telling(tail);
    for (struct tail_reader *reader; (reader = next_reader(tail));)
        reader_fail(reader, refused);
    end_telling(tail);
}

/* ---- where the stream stands ----------------------------------------------------------------------------- */

static void fetch(struct tail *tail)
{
    if (tail->ask.caller)
        tail->is_wanted = true;
    else if (!tail->is_known)
        tail_fetch(tail, &tail->ask, INT64_MAX, 1);
    else
        tail_fetch(tail, &tail->ask, tail->next, TAIL_FETCH);
}

/* What was read last is asked for once more. False: it cannot be, as nothing was, or it is no longer kept. */
static bool check(struct tail *tail, const struct msg_stream_head *head)
{
    tail->differs = false;
    tail->checks = tail->sure.seq && tail->sure.seq >= head->first && tail->sure.seq <= head->head &&
                   tail_fetch(tail, &tail->ask, tail->sure.seq, 1);
    return tail->checks;
}

static void stand(struct tail *tail, const struct msg_stream_head *head)
{
    seen_note(&tail->seen, head);
    tail->at = *head;
    tail->at.stream = slice_from_str(tail->stream);
    tail->is_known = true;
}

static void go_on_from(struct tail *tail)
{
    const bool is_more = tail->is_wanted || tail->next <= tail->at.head;
    tail->is_wanted = false;
    if (is_more && !list_is_empty(&tail->readers))
        fetch(tail);
    tell_each(tail, reader_go_on);
}

/* Nothing that was read is of this ledger, as far as anybody knows: all of it is new. */
static void begin_anew(struct tail *tail, const struct msg_stream_head *head)
{
    log_event(LOG_WARN, "gateway.ledger", "stream=%s epoch=%llu head=%llu read=%llu action=read-anew", tail->stream,
              (unsigned long long)head->epoch, (unsigned long long)head->head, (unsigned long long)tail->newest.seq);
    tail->newest = tail->sure = (struct tail_mark){0};
    tail->next = head->head + 1;
    stand(tail, head);
    tell_each(tail, reader_replace);
}

static bool is_other_ledger(const struct tail *tail, const struct msg_stream_head *head)
{
    return seen_is_other_ledger(&tail->seen, head) || head->head < tail->newest.seq || head->head + 1 < tail->next;
}

static void take_head(struct tail *tail, const struct msg_stream_head *head)
{
    const bool was_checked = tail->checks, is_new = tail->is_known && seen_is_new_start(&tail->seen, head);
    tail->heard_ms = clock_ms();
    tail->checks = false;
    hold(tail);
    if (tail->is_known && (is_other_ledger(tail, head) || (was_checked && tail->differs))) {
        begin_anew(tail, head);
    } else if (!is_new || was_checked || !check(tail, head)) {
        if (!tail->is_known)
            tail->next = head->head + 1;
        tail->sure = tail->newest;
        stand(tail, head);
        if (is_new)
            tell_each(tail, reader_restart);
    }
    if (!tail->checks)
        go_on_from(tail);
    let_go(tail);
}

/* What was to be checked is no longer kept, and tells nothing. */
static void give_up_checking(struct tail *tail)
{
    tail->checks = false;
    tail->sure.seq = 0;
    tail_fetch(tail, &tail->ask, INT64_MAX, 1);
}

static void take_trajectory(struct tail *tail, const struct msg_trajectory *message)
{
    if (tail->checks)
        tail->differs |= message->seq == tail->sure.seq && !mark_is(&tail->sure, message);
    else
        tell_live(tail, message);
}

static void on_answer(void *arg, const struct answer *answer)
{
    struct tail *tail = arg;
    const struct msg_stream_head nothing = {.first = 1, .epoch = tail->seen.epoch};
    const bool is_refused = answer && answer->id == MSG_refused;
    if (!answer && caller_refused(tail->identity->caller))
        fail_all(tail, NULL);
    else if (!answer)
        tail->checks = false; /* by the next head */
    else if (answer->id == MSG_trajectory)
        take_trajectory(tail, &answer->as.trajectory);
    else if (answer->id == MSG_stream_head)
        take_head(tail, &answer->as.stream_head);
    else if (is_refused && slice_is(answer->as.refused.reason, refusal_wire(REFUSAL_UNKNOWN_STREAM)))
        take_head(tail, &nothing);
    else if (is_refused && tail->checks)
        give_up_checking(tail);
    else if (is_refused)
        fail_all(tail, &answer->as.refused);
}

/* Whether a head tells of what was not read yet, or of another start than that which is known. */
static bool is_news(const struct tail *tail, const struct msg_stream_head *head)
{
    return head->head >= tail->next || head->head + 1 < tail->next || seen_is_new_start(&tail->seen, head);
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
    if (id == MSG_stream_head && message_decode(id, body, &in, &no) && !is_news(tail, &in.stream_head))
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
        tail_drop(tail);
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
    reader_init(reader, tail, plan, from);
    return true;
}

void tail_leave(struct tail_reader *reader) { reader_leave(reader); }

/* ---- all of them ----------------------------------------------------------------------------------------- */

static void on_step(void *arg)
{
    struct tails *tails = arg;
    struct tail *tail;
    const int64_t now_ms = clock_ms();
    tails->step = loop_after(tails->loop, STEP_MS, on_step, tails);
    LIST_EACH(tail, &tails->each, link) {
        const bool is_silent = !tail->is_known || now_ms - tail->heard_ms > SILENCE_MS;
        if (!tail->ask.caller && (is_silent || tail->is_wanted)) {
            tail->heard_ms = now_ms;
            fetch(tail);
        }
        tell_each(tail, reader_go_on);
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
    hold(tail); /* it goes last */
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
        tail_drop(tail);
    }
    free(tails);
}
