/*
 * io/waiting.h - a message of a socket, read and not yet handled. A worker's may be a bundle (common/net/bundle.h): it
 * is looked through once, when it is read, and its messages are taken out one at a time as they have their turns,
 * from the bytes they came in, nothing being made for each.
 *
 * What of a bundle cannot be read (an end that is cut short, more messages than BUNDLE_COUNT_MAX, nothing at all) has a
 * turn as if it were one message, behind those that can, and is refused then.
 */
#ifndef SLUICE_BROKER_IO_WAITING_H
#define SLUICE_BROKER_IO_WAITING_H

#include <zmq.h>

#include "broker/io/looks.h"
#include "broker/io/turns.h"
#include "schemas/messages/message.h"

struct waiting {
    struct turn_inbound turn;
    struct look look;     /* of a client's */
    zmq_msg_t from, body; /* `from`: the client's identity; empty for a worker */
    bool alone;           /* the body is one frame */
    bool is_bundle;
    size_t at;      /* in a bundle: behind what was taken out */
    uint64_t batch; /* for which something was taken out last, its number ... */
    size_t kept_at; /* ... and which place of its inbound keeps the bytes */
};

/* NULL when nothing is there, or no memory, which then may be there in the next cycle. */
struct waiting *waiting_read(void *socket, bool is_client);
void waiting_drop(struct waiting *waiting);

/* Whether it is such a message; of a bundle, whether all in it is. */
bool waiting_is(struct waiting *waiting, enum message_id id);

/*
 * The message that turns_take gave the turn to, out of `body`, which is what `waiting` was read with. False with why
 * what has the turn cannot be read.
 */
bool waiting_next(struct waiting *waiting, struct slice body, struct slice *ret, struct refusal *no);

#endif
