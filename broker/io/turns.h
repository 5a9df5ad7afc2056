/*
 * turns.h - whose message is next, of those that were read of a socket and wait to be handled.
 *
 * libzmq gives the messages of a socket's connections in turn, one each: by that alone who opens many connections
 * has many turns. So messages are read in rounds, ahead of their handling: a round has ended when a connection comes
 * a second time, as by then each that had something has given one. Of what waits the peer goes first that has cost
 * least; of a peer's, its connections in turn; of a connection's, what came first. Who is new, or was silent, begins
 * where the least is: nobody saves up. When nothing waits, all accounts begin anew.
 *
 * Of several messages that came as one each has a turn of its own; up to ROW of them are taken in a row, which their
 * connection gives back.
 *
 * What waits has a bound for each peer. Where one has come half as far, rounds are ROUND_US apart: so a peer whose
 * connections' messages, one of each, are handled within that time, or that has only one connection, is only waited
 * for. What comes beyond the bound is for whoever reads to refuse. There is a bound for all of them, beyond which
 * nothing is read. A peer has a name, which who reads chooses; no clock and no socket is known here.
 */
#ifndef SLUICE_BROKER_IO_TURNS_H
#define SLUICE_BROKER_IO_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/containers/list.h"
#include "common/base/slice.h"

enum {
    PEER_WAITING_MAX = 4096,       /* messages of one peer ... */
    PEER_WAITING_BYTES = 32 << 20, /* ... and their bytes, beyond the last */
    WAITING_MAX = 16384,           /* of all ... */
    WAITING_BYTES = 128 << 20,     /* ... likewise */
    ROUND_US = 15000,
    ROW = 16
};

struct turns;

/* Part of what its reader keeps of a message, or of several that came as one. */
struct turn_inbound {
    struct list link;
    uint64_t place; /* in its peer's queue */
    size_t bytes;
    uint32_t count; /* how many messages wait; at least one when it is added */
    bool is_held;   /* it cannot be taken yet, nor what comes behind it */
};

/* NULL when out of memory. */
struct turns *turns_create(void);
/* What still waits must have been taken. NULL-safe. */
void turns_destroy(struct turns **turns);

/* A round of reading begins; false: not yet. */
bool turns_begin(struct turns *turns, int64_t now_us);
/* Whether it goes on. */
bool turns_want(const struct turns *turns);

/*
 * A message was read; `connection` is a descriptor. False, and the message stays the caller's, when as much of its
 * peer waits as may; with `anyway` never.
 */
bool turns_add(struct turns *turns, struct slice peer, int connection, struct turn_inbound *inbound, bool anyway);

/*
 * What has the next message, which counts there no longer; where none is left there, it is the caller's. NULL when
 * none waits, when it is held, or when the last one of its peer cost more than `most_us`: who is so slow waits for a
 * cycle's beginning.
 */
struct turn_inbound *turns_take(struct turns *turns, int64_t most_us);
/* What the one cost that was taken last. */
void turns_charge(struct turns *turns, int64_t cost_us);

size_t turns_count(const struct turns *turns);
/* Whether the next one is held. */
bool turns_are_held(struct turns *turns);

#endif
