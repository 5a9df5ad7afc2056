#include "client/gateway/runs/runs.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/broker/own_stream.h"
#include "client/gateway/runs/run_base.h"
#include "client/gateway/runs/run_doubts.h"
#include "client/gateway/runs/run_ends.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { SWEEP_MS = 1000, IDLE_MS = 60000 };

static void go_on(struct run_wait *wait, const struct run_place *from);
static void submit(struct run_place *place);

/* ---- waiting --------------------------------------------------------------------------------------------- */

static void attach(struct run_place *place, struct run_wait *wait)
{
    place->wait = wait;
    place->is_told = false;
    wait->place = place;
}

static void detach(struct run_place *place)
{
    struct run_wait *wait = place->wait;
    if (!wait)
        return;
    place->wait = NULL;
    place->alone_ms = clock_ms();
    wait->place = NULL;
}

static void fail(struct run_place *place, const struct msg_refused *refused)
{
    struct run_wait *wait = place->wait;
    detach(place);
    if (wait)
        wait->failed(wait->arg, refused);
}

/* ---- asking the broker ----------------------------------------------------------------------------------- */

/* Somebody has the answer of this: the next number. Should the stream still tell of it, its name is known as had. */
static void pass_over(struct run_place *place)
{
    struct run_wait *wait = place->wait;
    run_numbers_pass(&place->of->numbers, place->base, place->number);
    detach(place);
    if (wait)
        go_on(wait, place);
    run_place_drop(place);
}

/* The broker does not know it: it never came, or the ledger that had it was replaced. */
static void lose(struct run_place *place)
{
    char words[256];
    if (place->wait && place->is_told) {
        place->is_gone = true; /* its caller has what it ended in */
        return;
    }
    if (place->wait && place->task.len > 0 && !place->is_cancelled) {
        place->state = PLACE_ASKED;
        place->is_gone = place->is_had = false;
        submit(place);
        return;
    }
    snprintf(words, sizeof(words),
             "the broker no longer knows the rollout %s/0: its ledger was replaced by another one. Ask again",
             place->name);
    const struct msg_refused refused = {.reason = slice_from_str(HTTP_CALL_LEDGER_REPLACED),
                                        .text = slice_from_str(words),
                                        .retry_after_ms = 1000,
                                        .has_retry_after_ms = true};
    fail(place, &refused);
    run_place_drop(place);
}

static void on_got(void *arg, const struct answer *answer)
{
    struct run_place *place = arg;
    const int refused = answer && answer->id == MSG_refused ? http_call_status_of(answer->as.refused.reason) : 0;
    if (answer && answer->id == MSG_trajectory) {
        run_ends_tell(place, &answer->as.trajectory);
    } else if (answer && answer->id == MSG_rollout_state) {
        place->state = PLACE_LIVE;
        place->is_gone = false;
    } else if (refused == 410) {
        pass_over(place);
    } else if (refused == 404 && !place->seq) {
        lose(place);
    } else if (!answer || refused) {
        fail(place, answer ? &answer->as.refused : NULL);
        if (!answer && place->is_cancelled && place->state == PLACE_LIVE) {
            place->is_cancelled = false; /* by a later sweep */
            place->alone_ms = clock_ms();
        }
    }
}

static void cancel(struct run_place *place)
{
    struct caller *caller = place->of->identity->caller;
    struct refusal no;
    const struct msg_rollout_cancel in = {
        .tag = caller_next_tag(caller), .group = slice_from_str(place->name), .has_group = true};
    place->is_cancelled = true;
    if (place->state != PLACE_LIVE)
        return; /* once it is submitted, or never */
    caller_forget(&place->ask);
    place->ask.answered = on_got; /* `done` says nothing: the end comes by the stream */
    place->ask.arg = place;
    caller_ask(caller, &place->ask, MSG_rollout_cancel, &in, in.tag, HTTP_CALL_WAIT_MS, &no);
}

static void on_accepted(void *arg, const struct answer *answer)
{
    struct run_place *place = arg;
    if (!answer || answer->id != MSG_group_accepted) {
        place->state = answer ? PLACE_ENDED : PLACE_LIVE;
        place->is_unsure = !answer;
        fail(place, answer ? &answer->as.refused : NULL);
        if (answer)
            run_place_drop(place);
        return;
    }
    if (place->state == PLACE_ASKED)
        place->state = PLACE_LIVE;
    if (!answer->as.group_accepted.known) /* of a ledger that was replaced it may have been had */
        had_remove(place->of->runs->had, place->name);
    if (place->is_cancelled)
        cancel(place);
    else if (!answer->as.group_accepted.known)
        buffer_finish(&place->task);
    else if (place->is_had || had_has(place->of->runs->had, place->name) || !place->takes_over)
        pass_over(place);
    else
        run_place_get(place, on_got);
}

static void submit(struct run_place *place)
{
    struct runs_of *of = place->of;
    struct refusal no;
    const struct msg_group_submit in = {.tag = caller_next_tag(of->identity->caller),
                                        .group = slice_from_str(place->name),
                                        .stream = slice_from_str(of->stream),
                                        .samples = 1,
                                        .task = buffer_peek(&place->task)};
    place->ask.answered = on_accepted;
    place->ask.arg = place;
    if (caller_ask(of->identity->caller, &place->ask, MSG_group_submit, &in, in.tag, HTTP_CALL_WAIT_MS, &no))
        return;
    const struct msg_refused refused = {.reason = slice_from_str(refusal_wire(no.reason)),
                                        .field = slice_from_str(no.field),
                                        .text = slice_from_str(no.text)};
    fail(place, &refused);
    run_place_drop(place);
}

/* ---- finding its place ----------------------------------------------------------------------------------- */

static bool is_free_to_take(const struct run_place *place)
{
    return !place->wait && !place->is_had && !place->is_cancelled;
}

/* One of that base and number, and who waits for it; NULL: out of memory. */
static struct run_place *add_like(const struct run_place *like, unsigned number)
{
    char name[HAD_NAME_SIZE + 16];
    snprintf(name, sizeof(name), "%s-%u", like->base, number);
    struct run_place *place = run_place_add(like->of, name);
    if (!place)
        return NULL;
    snprintf(place->base, sizeof(place->base), "%s", like->base);
    place->number = number;
    place->takes_over = like->takes_over;
    buffer_append(&place->id, like->id.data, like->id.len);
    buffer_append(&place->task, like->task.data, like->task.len);
    return place;
}

static void take_over(struct run_place *place, struct run_wait *wait, const struct run_place *like, unsigned number)
{
    attach(place, wait);
    place->number = number;
    place->takes_over = true;
    if (!place->base[0]) { /* from before the start: now it is known what it was */
        snprintf(place->base, sizeof(place->base), "%s", like->base);
        buffer_append(&place->id, like->id.data, like->id.len);
    }
    if (place->task.len == 0) /* should the broker have forgotten what it came to */
        buffer_append(&place->task, like->task.data, like->task.len);
    if (place->state == PLACE_ENDED) {
        run_place_get(place, on_got);
    } else if (place->is_unsure) {
        place->is_unsure = false;
        place->state = PLACE_ASKED;
        submit(place);
    }
}

/* The first of these names that is free, from that one's number on; a new one if none is. */
static bool settle(struct run_wait *wait, const struct run_place *like)
{
    struct runs_of *of = like->of;
    char name[HAD_NAME_SIZE + 16];
    for (unsigned number = like->number;; number++) {
        snprintf(name, sizeof(name), "%s-%u", like->base, number);
        struct run_place *place = table_find(&of->places, slice_from_str(name));
        if (place && (!like->takes_over || !is_free_to_take(place)))
            continue;
        if (place) {
            take_over(place, wait, like, number);
            return true;
        }
        place = add_like(like, number);
        if (!place)
            return false;
        attach(place, wait);
        submit(place);
        return true;
    }
}

static void go_on(struct run_wait *wait, const struct run_place *from)
{
    struct run_place next = *from;
    next.number++;
    if (next.task.len == 0 || !settle(wait, &next))
        wait->failed(wait->arg, NULL);
}

/* ---- identities' ----------------------------------------------------------------------------------------- */

static void drop_of(struct runs_of *of)
{
    size_t at = 0;
    for (struct run_place *place; (place = table_next(&of->places, &at)); at = 0) {
        detach(place);
        run_place_drop(place);
    }
    table_finish(&of->places);
    run_numbers_finish(&of->numbers);
    tail_leave(&of->reader);
    caller_forget(&of->ack);
    list_remove(&of->link);
    identities_give_back(of->runs->gateway->identities, of->identity);
    free(of);
}

/* Each key has a stream of its own: streams belong to keys. */
static struct runs_of *find_of(struct runs *runs, struct identity *identity)
{
    struct runs_of *of;
    LIST_EACH(of, &runs->each, link)
        if (of->identity == identity)
            return of->reader.tail || run_ends_follow(of) ? of : NULL;
    of = calloc(1, sizeof(*of));
    if (!of)
        return NULL;
    of->runs = runs;
    of->identity = identity;
    of->idle_ms = clock_ms();
    identity->uses++;
    list_init(&of->ended);
    list_push_back(&runs->each, &of->link);
    if (own_stream_name(runs->gateway->settings->stream, identity, of->stream) && run_ends_follow(of))
        return of;
    drop_of(of);
    return NULL;
}

bool run_begin(struct runs *runs, const struct run_plan *plan, struct run_wait *wait)
{
    struct run_place like = {.of = find_of(runs, plan->identity), .takes_over = plan->takes_over};
    wait->runs = runs;
    bool is_begun = like.of && run_base(plan, like.base) && buffer_append(&like.id, plan->id.data, plan->id.len) &&
                    buffer_append(&like.task, plan->task.data, plan->task.len);
    if (is_begun)
        like.number = run_numbers_first(&like.of->numbers, like.base);
    is_begun = is_begun && settle(wait, &like);
    buffer_finish(&like.id);
    buffer_finish(&like.task);
    return is_begun;
}

const char *run_name(const struct run_wait *wait) { return wait->place ? wait->place->name : ""; }

void run_had(struct run_wait *wait)
{
    struct run_place *place = wait->place;
    if (!place)
        return;
    place->is_had = true;
    if (place->takes_over)
        had_add(wait->runs->had, place->name);
    detach(place);
    run_ends_ack(place->of);
}

void run_leave(struct run_wait *wait, bool is_cancelled)
{
    struct run_place *place = wait->place;
    if (!place)
        return;
    detach(place);
    if (is_cancelled)
        cancel(place);
}

size_t runs_cancel(struct runs *runs, const struct identity *identity, struct slice id)
{
    struct runs_of *of;
    size_t at = 0, count = 0;
    LIST_EACH(of, &runs->each, link)
        if (of->identity == identity)
            for (struct run_place *place; (place = table_next(&of->places, &at));)
                if (place->state != PLACE_ENDED && place->base[0] && slice_equal(buffer_peek(&place->id), id)) {
                    cancel(place);
                    count++;
                }
    return count;
}

bool runs_note(struct runs *runs, const char *name) { return had_add(runs->had, name); }

bool runs_has_noted(const struct runs *runs, const char *name) { return had_has(runs->had, name); }

void runs_remove_note(struct runs *runs, const char *name) { had_remove(runs->had, name); }

/* ---- all of them ----------------------------------------------------------------------------------------- */

static void sweep_place(struct run_place *place, int64_t now_ms)
{
    const int64_t alone_ms = place->wait ? 0 : now_ms - place->alone_ms;
    if (place->state == PLACE_LIVE && !place->is_cancelled && alone_ms > place->of->runs->gateway->settings->orphan_ms)
        cancel(place);
    const int64_t kept_ms = place->base[0] ? place->of->runs->gateway->settings->orphan_ms : RUNS_UNCLAIMED_MS;
    if (place->state == PLACE_ENDED && !place->is_had && !place->wait && (place->is_cancelled || alone_ms > kept_ms))
        place->is_had = true;
}

static void on_sweep(void *arg)
{
    struct runs *runs = arg;
    struct runs_of *of;
    const int64_t now_ms = clock_ms();
    runs->sweep = loop_after(runs->gateway->loop, SWEEP_MS, on_sweep, runs);
    LIST_EACH(of, &runs->each, link) {
        size_t at = 0;
        for (struct run_place *place; (place = table_next(&of->places, &at));)
            sweep_place(place, now_ms);
        run_doubts_sweep(of, lose, cancel);
        run_ends_ack(of);
        of->idle_ms = of->places.count > 0 ? now_ms : of->idle_ms;
        if (now_ms - of->idle_ms > IDLE_MS && !of->ack.caller)
            drop_of(of);
    }
}

struct runs *runs_open(struct gateway *gateway, struct fail *fail)
{
    if (gateway->runs) {
        gateway->runs->users++;
        return gateway->runs;
    }
    struct runs *runs = calloc(1, sizeof(*runs));
    if (!runs) {
        fail_memory(fail);
        return NULL;
    }
    runs->gateway = gateway;
    runs->users = 1;
    list_init(&runs->each);
    runs->had = had_open(gateway->settings->state_path, fail);
    runs->tails = runs->had ? tails_open(gateway->loop) : NULL;
    runs->sweep = runs->tails ? loop_after(gateway->loop, SWEEP_MS, on_sweep, runs) : NULL;
    gateway->runs = runs;
    if (!runs->sweep)
        runs_close(&runs);
    return runs;
}

void runs_close(struct runs **handle)
{
    struct runs *runs = take_ptr(handle);
    struct runs_of *of;
    if (!runs || --runs->users > 0)
        return;
    runs->gateway->runs = NULL;
    LIST_EACH(of, &runs->each, link)
        drop_of(of);
    loop_cancel(runs->gateway->loop, &runs->sweep);
    if (runs->tails)
        tails_close(&runs->tails);
    had_close(&runs->had);
    free(runs);
}
