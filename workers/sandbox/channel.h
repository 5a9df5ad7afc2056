/*
 * channel.h - the worker's end of a wire socket: requests from fibers, answers matched by
 * id, events to a callback. An answer that nobody waits for any more is dropped and its
 * descriptors closed. Used on the loop's thread only.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CHANNEL_H
#define SLUICE_WORKERS_SANDBOX_CHANNEL_H

#include "common/base/fail.h"
#include "common/loop/loop.h"
#include "workers/sandbox/proto/wire.h"

enum { CHANNEL_FDS_MAX = 2 + LISTENERS_MAX > 7 ? 2 + LISTENERS_MAX : 7 }; /* of WIRE_READY_ID, WIRE_INSIDE */

struct channel_call; /* one request under way, on its fiber's stack */

struct channel {
    int socket; /* -1 once closed */
    struct loop *loop;
    struct loop_watch *watch;
    uint32_t last_id;
    struct channel_call *calls;
    void (*heard)(void *arg, struct wire_message *message); /* everything but answers */
    void (*lost)(void *arg);                                /* the other end is gone; once */
    void *arg;
};

struct channel_answer {
    int code;
    int64_t result;
    int fds[CHANNEL_FDS_MAX]; /* the caller's; -1 where there is none */
};

/* Watches `socket` and owns it. False when out of memory (the socket is closed then too). */
bool channel_open(struct channel *channel, struct loop *loop, int socket);
/* Ends every call under way with -ECONNRESET. Idempotent. */
void channel_close(struct channel *channel);

/*
 * Sends and awaits the answer: its code, or -ETIMEDOUT, -ECANCELED, -ECONNRESET. `head`
 * gets its id. In a fiber.
 */
int channel_call(struct channel *channel, struct wire_head *head, struct slice text, const int *fds, size_t fd_count,
                 struct channel_answer *ret, struct fail *fail);
/* Awaits the answer to an id that was not sent from here (WIRE_READY_ID). */
int channel_expect(struct channel *channel, uint32_t id, struct channel_answer *ret, struct fail *fail);
/* Sends without caring for the answer. */
int channel_tell(struct channel *channel, struct wire_head *head);
/* Reads what is there now, as the loop would at its next turn. */
void channel_drain(struct channel *channel);

#endif
