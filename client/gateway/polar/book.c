#include "client/gateway/polar/book.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/broker/own_stream.h"
#include "client/gateway/outgoing/outgoing.h"
#include "client/gateway/polar/follow.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum { SWEEP_MS = 1000, TOMBSTONE_MS = 300000, TOMBSTONES_MAX = 10000, IDLE_MS = 60000 };

/* ---- cancelled before they came --------------------------------------------------------------------------- */

struct tombstone {
    char base[BOOK_BASE_SIZE];
    int64_t ends_ms;
};

bool book_bury(struct book *book, const char *base)
{
    struct tombstone *one = table_find(&book->tombstones, slice_from_str(base));
    if (!one && book->tombstones.count < TOMBSTONES_MAX && (one = calloc(1, sizeof(*one)))) {
        snprintf(one->base, sizeof(one->base), "%s", base);
        if (!table_put(&book->tombstones, slice_from_str(one->base), one)) {
            free(one);
            one = NULL;
        }
    }
    if (one)
        one->ends_ms = clock_ms() + TOMBSTONE_MS;
    return one != NULL;
}

bool book_is_buried(const struct book *book, const char *base)
{
    const struct tombstone *one = table_find(&book->tombstones, slice_from_str(base));
    return one && one->ends_ms > clock_ms();
}

static void unbury(struct book *book, int64_t now_ms)
{
    size_t at = 0;
    for (struct tombstone *one; (one = table_next(&book->tombstones, &at));)
        if (one->ends_ms <= now_ms) {
            table_take(&book->tombstones, slice_from_str(one->base));
            free(one);
            at = 0;
        }
}

/* ---- identities' ------------------------------------------------------------------------------------------ */

static void drop_of(struct polar_of *of)
{
    polar_tasks_finish(of);
    tail_leave(&of->reader);
    caller_forget(&of->list_ask);
    caller_forget(&of->ack);
    list_remove(&of->link);
    identities_give_back(of->book->gateway->identities, of->identity);
    free(of);
}

struct polar_of *book_of(struct book *book, struct identity *identity)
{
    struct polar_of *of;
    LIST_EACH(of, &book->each, link)
        if (of->identity == identity)
            return of;
    of = calloc(1, sizeof(*of));
    if (!of)
        return NULL;
    of->book = book;
    of->identity = identity;
    of->idle_ms = clock_ms();
    identity->uses++;
    list_init(&of->ended);
    list_init(&of->gone);
    list_push_back(&book->each, &of->link);
    if (own_stream_name("polar", identity, of->stream) && follow_begin(of))
        return of;
    drop_of(of);
    return NULL;
}

bool book_is_ready(const struct polar_of *of) { return of->is_listed && of->is_told; }

static void on_sweep(void *arg)
{
    struct book *book = arg;
    struct polar_of *of;
    const int64_t now_ms = clock_ms();
    book->sweep = loop_after(book->gateway->loop, SWEEP_MS, on_sweep, book);
    unbury(book, now_ms);
    LIST_EACH(of, &book->each, link) {
        follow_sweep(of, now_ms);
        if (of->users > 0 || of->tasks.count > 0 || !list_is_empty(&of->ended))
            of->idle_ms = now_ms;
        if (now_ms - of->idle_ms > IDLE_MS && of->identity != book->anonymous)
            drop_of(of);
    }
}

/* Without keys all have one identity, whose tasks are known again before anybody asks for them. */
static void begin(struct book *book)
{
    int status;
    const char *why;
    struct identity *identity = identities_find(book->gateway->identities, NULL, &status, &why);
    if (!identity)
        return;
    if (book_of(book, identity))
        book->anonymous = identity;
    identities_give_back(book->gateway->identities, identity);
}

bool book_open(struct gateway *gateway, struct book **ret)
{
    struct fail fail = {0};
    struct book *book = calloc(1, sizeof(*book));
    if (!book)
        return false;
    *ret = book;
    book->gateway = gateway;
    list_init(&book->each);
    list_init(&book->clients);
    book->runs = runs_open(gateway, &fail);
    book->tails = tails_open(gateway->loop);
    book->outgoing = outgoing_open(gateway->loop);
    book->sweep = loop_after(gateway->loop, SWEEP_MS, on_sweep, book);
    if (book->runs && book->tails && book->outgoing && book->sweep) {
        begin(book);
        return true;
    }
    log_event(LOG_ERROR, "gateway.runs", "error=\"%s\"", fail.text[0] ? fail.text : "out of memory");
    book_close(ret);
    return false;
}

void book_close(struct book **handle)
{
    struct book *book = take_ptr(handle);
    struct polar_of *of;
    if (!book)
        return;
    outgoing_close(&book->outgoing);
    LIST_EACH(of, &book->each, link)
        drop_of(of);
    loop_cancel(book->gateway->loop, &book->sweep);
    unbury(book, INT64_MAX);
    table_finish(&book->tombstones);
    if (book->tails)
        tails_close(&book->tails);
    runs_close(&book->runs);
    free(book);
}
