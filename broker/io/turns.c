#include "broker/io/turns.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/containers/heap.h"
#include "common/containers/table.h"

enum { CONNECTIONS_MAX = 65536, NAME_MAX_BYTES = 64 };

struct peer {
    struct list inbound;   /* by place */
    struct heap_node turn; /* in turns->waiting while something of it waits, by what it cost in all ... */
    struct list link;      /* ... and in turns->idle while nothing does */
    uint64_t number;       /* of no other peer, ever */
    uint64_t place;        /* of its message that was taken last */
    size_t count, bytes;
    int64_t used_us, last_us;      /* what it cost in all, and what its last message did */
    uint64_t round;                /* in which something of it was read last */
    const struct connection *last; /* by which it was */
    bool gave_two;                 /* several connections gave something in that round */
    uint32_t len;
    uint8_t name[NAME_MAX_BYTES];
};

/* By descriptor, which another connection, of another peer, may have had before. */
struct connection {
    uint64_t peer, next_place, round;
};

struct turns {
    struct table by_name;
    struct heap waiting;
    struct list idle;           /* who was served longest ago is first */
    struct peer nobody;         /* for whom there was no memory; in neither of them for want of it */
    struct peer *taken;         /* whose message was taken last, or NULL */
    size_t count, bytes, heavy; /* messages; peers of which half as much waits as may */
    uint64_t numbers, round;
    bool round_has_ended;
    int64_t round_us; /* when it began */
    int64_t least_us; /* what the peer had cost whose turn it was last */
    struct connection connections[CONNECTIONS_MAX];
};

static void begin_peer(struct turns *turns, struct peer *peer)
{
    peer->number = ++turns->numbers;
    list_init(&peer->inbound);
    list_push_back(&turns->idle, &peer->link);
}

/* Of two that have cost the same, who was known first. */
static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    return container_of(a, const struct peer, turn)->number < container_of(b, const struct peer, turn)->number;
}

struct turns *turns_create(void)
{
    struct turns *turns = calloc(1, sizeof(*turns));
    if (!turns)
        return NULL;
    turns->waiting.is_before = is_before;
    list_init(&turns->idle);
    begin_peer(turns, &turns->nobody);
    return turns;
}

static void forget(struct turns *turns, struct peer *peer)
{
    list_remove(&peer->link);
    if (peer == &turns->nobody) {
        peer->used_us = peer->last_us = 0;
        return;
    }
    table_take(&turns->by_name, slice_of(peer->name, peer->len));
    free(peer);
}

void turns_destroy(struct turns **destroying)
{
    struct turns *turns = take_ptr(destroying);
    struct peer *peer;
    if (!turns)
        return;
    LIST_EACH(peer, &turns->idle, link)
        forget(turns, peer);
    table_finish(&turns->by_name);
    heap_finish(&turns->waiting);
    free(turns);
}

size_t turns_count(const struct turns *turns) { return turns->count; }

/* ---- reading ---------------------------------------------------------------------------------- */

bool turns_begin(struct turns *turns, int64_t now_us)
{
    if (turns->heavy && now_us - turns->round_us < ROUND_US)
        return false;
    turns->round++;
    turns->round_has_ended = false;
    turns->round_us = now_us;
    return true;
}

bool turns_want(const struct turns *turns)
{
    return !turns->round_has_ended && turns->count < WAITING_MAX && turns->bytes < WAITING_BYTES;
}

static struct peer *find_peer(struct turns *turns, struct slice name)
{
    if (name.len > NAME_MAX_BYTES)
        name.len = NAME_MAX_BYTES;
    struct peer *peer = table_find(&turns->by_name, name);
    if (peer)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (!peer)
        return &turns->nobody;
    peer->len = (uint32_t)name.len;
    if (name.len)
        memcpy(peer->name, name.data, name.len);
    if (!table_put(&turns->by_name, slice_of(peer->name, peer->len), peer)) {
        free(peer);
        return &turns->nobody;
    }
    begin_peer(turns, peer);
    return peer;
}

/* It has its turns from now on. False when there is no memory for that. */
static bool begin_waiting(struct turns *turns, struct peer *peer)
{
    if (peer->used_us < turns->least_us)
        peer->used_us = turns->least_us;
    if (peer != &turns->nobody && !heap_put(&turns->waiting, &peer->turn, peer->used_us))
        return false;
    list_remove(&peer->link);
    return true;
}

static void end_waiting(struct turns *turns, struct peer *peer)
{
    heap_remove(&turns->waiting, &peer->turn);
    list_push_back(&turns->idle, &peer->link);
}

/*
 * A round ends when a connection comes a second time. Where that is the only one of its peer, it counts as its message
 * of the next round: it gives one in each.
 */
static void note_round(struct turns *turns, struct peer *peer, struct connection *connection)
{
    bool is_second = connection->round == turns->round;
    peer->gave_two = peer->round == turns->round && (peer->gave_two || peer->last != connection);
    peer->round = turns->round;
    peer->last = connection;
    turns->round_has_ended |= is_second;
    connection->round = turns->round + (is_second && !peer->gave_two);
}

/* A share of what may wait, of two halves. */
static bool has_filled(const struct peer *peer, size_t halves)
{
    return peer->count >= halves * (PEER_WAITING_MAX / 2) || peer->bytes >= halves * (PEER_WAITING_BYTES / 2);
}

/* Behind those of the same place: connections that have as much waiting have their turn in the order they came. */
static void queue_inbound(struct peer *peer, struct turn_inbound *inbound)
{
    struct list *at = peer->inbound.prev;
    while (at != &peer->inbound && container_of(at, struct turn_inbound, link)->place > inbound->place)
        at = at->prev;
    list_insert(&inbound->link, at, at->next);
}

bool turns_add(struct turns *turns, struct slice name, int fd, struct turn_inbound *inbound, bool anyway)
{
    struct connection *connection = &turns->connections[fd >= 0 && fd < CONNECTIONS_MAX ? fd : 0];
    struct peer *peer = find_peer(turns, name);
    assert(inbound->count > 0);
    if (!peer->count && !begin_waiting(turns, peer)) {
        peer = &turns->nobody;
        if (!peer->count)
            begin_waiting(turns, peer);
    }
    bool was_heavy = has_filled(peer, 1);
    note_round(turns, peer, connection);
    if (has_filled(peer, 2) && !anyway)
        return false;
    if (connection->peer != peer->number)
        *connection = (struct connection){.peer = peer->number, .round = connection->round};
    inbound->place = connection->next_place > peer->place ? connection->next_place : peer->place;
    connection->next_place = inbound->place + inbound->count;
    queue_inbound(peer, inbound);
    peer->count += inbound->count, peer->bytes += inbound->bytes;
    turns->count += inbound->count, turns->bytes += inbound->bytes;
    turns->heavy += !was_heavy && has_filled(peer, 1);
    return true;
}

/* ---- taking ----------------------------------------------------------------------------------- */

/* Accounts of those of whom nothing waits, once they do not matter: they are where the least is, or nothing waits at
 * all. */
static void forget_idle(struct turns *turns)
{
    struct peer *peer;
    LIST_EACH(peer, &turns->idle, link) {
        if (turns->count && peer->used_us > turns->least_us)
            return;
        forget(turns, peer);
    }
}

/* Whose turn it is, or NULL. */
static struct peer *find_next(struct turns *turns)
{
    struct heap_node *first = heap_peek(&turns->waiting);
    struct peer *next = first ? container_of(first, struct peer, turn) : NULL, *nobody = &turns->nobody;
    return nobody->count && (!next || nobody->used_us <= next->used_us) ? nobody : next;
}

/* One of its messages is taken: its bytes stay until none is left. */
static void take_one(struct turns *turns, struct peer *peer, struct turn_inbound *inbound)
{
    peer->place = inbound->place;
    peer->count--, turns->count--;
    if (--inbound->count % ROW != 0)
        return;
    list_remove(&inbound->link);
    if (inbound->count > 0) {
        inbound->place += ROW;
        queue_inbound(peer, inbound);
        return;
    }
    peer->bytes -= inbound->bytes, turns->bytes -= inbound->bytes;
}

static struct turn_inbound *first_of(const struct peer *peer)
{
    return container_of(peer->inbound.next, struct turn_inbound, link);
}

bool turns_are_held(struct turns *turns)
{
    const struct peer *next = find_next(turns);
    return next && first_of(next)->is_held;
}

struct turn_inbound *turns_take(struct turns *turns, int64_t most_us)
{
    turns->taken = NULL; /* it may be forgotten */
    forget_idle(turns);
    struct peer *next = find_next(turns);
    if (!next || next->last_us > most_us)
        return NULL;
    struct turn_inbound *inbound = first_of(next);
    if (inbound->is_held)
        return NULL;
    bool was_heavy = has_filled(next, 1);
    turns->least_us = next->used_us;
    take_one(turns, next, inbound);
    turns->heavy -= was_heavy && !has_filled(next, 1);
    turns->taken = next;
    if (!next->count)
        end_waiting(turns, next);
    return inbound;
}

void turns_charge(struct turns *turns, int64_t cost_us)
{
    struct peer *peer = turns->taken;
    if (!peer)
        return;
    peer->used_us += cost_us;
    peer->last_us = cost_us;
    if (peer->turn.place)
        heap_put(&turns->waiting, &peer->turn, peer->used_us); /* it is in: that needs no memory */
}
