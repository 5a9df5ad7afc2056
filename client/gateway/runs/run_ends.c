#include "client/gateway/runs/run_ends.h"

#include <stdio.h>

#include "common/base/clock.h"

enum { ACK_WAIT_MS = 10000 };

/* ---- acknowledging ------------------------------------------------------------------------------------ */

/* What the broker has forgotten need not be known as had any more. */
static void on_ack(void *arg, const struct answer *answer)
{
    struct runs_of *of = arg;
    struct run_place *place;
    if (!answer || answer->id != MSG_done)
        return; /* asked again by the next sweep */
    LIST_EACH(place, &of->ended, ended) {
        if (place->seq > of->acking)
            break;
        had_remove(of->runs->had, place->name);
        if (place->takes_over)
            run_numbers_pass(&of->numbers, place->base, place->number);
        run_place_drop(place);
    }
    run_ends_ack(of);
}

void run_ends_ack(struct runs_of *of)
{
    struct run_place *place;
    struct refusal no;
    uint64_t seq = 0;
    LIST_EACH(place, &of->ended, ended) {
        if (!place->is_had)
            break;
        seq = place->seq;
    }
    if (seq == 0 || of->ack.caller)
        return;
    const struct msg_stream_ack in = {
        .tag = caller_next_tag(of->identity->caller), .stream = slice_from_str(of->stream), .seq = seq};
    of->acking = seq;
    of->ack.answered = on_ack;
    of->ack.arg = of;
    caller_ask(of->identity->caller, &of->ack, MSG_stream_ack, &in, in.tag, ACK_WAIT_MS, &no);
}

/* ---- what the stream tells ------------------------------------------------------------------------------- */

void run_ends_tell(struct run_place *place, const struct msg_trajectory *trajectory)
{
    struct run_wait *wait = place->wait;
    if (!wait || place->is_told)
        return;
    place->is_told = true;
    buffer_finish(&place->task);
    wait->ended(wait->arg, trajectory);
}

static void on_trajectory(void *arg, struct told *told)
{
    struct runs_of *of = arg;
    const struct msg_trajectory *trajectory = told->message;
    struct run_place *place = table_find(&of->places, trajectory->group);
    char name[HAD_NAME_SIZE];
    if (!place && trajectory->group.len < sizeof(name)) {
        snprintf(name, sizeof(name), "%.*s", SLICE_ARG(trajectory->group));
        place = run_place_add(of, name);
    }
    if (!place || place->seq)
        return;
    place->state = PLACE_ENDED;
    place->seq = trajectory->seq;
    place->is_doubtful = place->is_gone = false;
    place->alone_ms = clock_ms();
    place->is_had |= place->is_cancelled && !place->wait;
    list_push_back(&of->ended, &place->ended);
    place->is_had |= had_has(of->runs->had, place->name);
    run_ends_tell(place, trajectory);
    run_ends_ack(of);
}

/* ---- another start, another ledger ------------------------------------------------------------------------ */

/* What has not ended is asked for by name: only the broker knows whether its ledger is the same. */
static void on_restarted(void *arg)
{
    struct runs_of *of = arg;
    size_t at = 0;
    for (struct run_place *place; (place = table_next(&of->places, &at));)
        place->is_doubtful |= place->state == PLACE_LIVE;
}

/* Its numbers are the new ledger's from now on; what had ended in the old one is none of it. */
static uint64_t on_replaced(void *arg, const struct msg_stream_head *head)
{
    struct runs_of *of = arg;
    struct run_place *place;
    caller_forget(&of->ack);
    LIST_EACH(place, &of->ended, ended) {
        list_remove(&place->ended);
        place->seq = 0;
        place->is_gone = true;
        if (!place->wait)
            run_place_drop(place);
    }
    on_restarted(of);
    return head->first;
}

/* It cannot be read: those who wait are told, as nothing would come any more. */
static void on_failed(void *arg, const struct msg_refused *refused)
{
    struct runs_of *of = arg;
    size_t at = 0;
    for (struct run_place *place; (place = table_next(&of->places, &at));) {
        struct run_wait *wait = place->wait;
        if (!wait)
            continue;
        place->wait = NULL;
        wait->place = NULL;
        wait->failed(wait->arg, refused);
    }
}

bool run_ends_follow(struct runs_of *of)
{
    const struct reader_plan plan = {
        .took = on_trajectory, .failed = on_failed, .restarted = on_restarted, .replaced = on_replaced, .arg = of};
    return tail_read(of->runs->tails, of->identity, of->stream, 0, &plan, &of->reader);
}
