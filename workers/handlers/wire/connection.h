/*
 * connection.h - the worker's end of a handler's socket: whole messages in and out, in frames of MessagePack or lines
 * of JSON, on the loop. What it takes from here is what messages.def allows and SENDER_HANDLER sends.
 *
 * Bounded: a message by HANDLER_MESSAGE_MAX, what waits to be sent by HANDLER_QUEUE_MAX; a turn of the loop reads at
 * most HANDLER_READ_MAX, so that a handler that talks without end takes no more than its turns. Anything else than a
 * message breaks the connection, and `broken` says why, once; it is then to be closed. Used on the loop's thread only.
 */
#ifndef SLUICE_WORKERS_HANDLERS_WIRE_CONNECTION_H
#define SLUICE_WORKERS_HANDLERS_WIRE_CONNECTION_H

#include "common/base/fail.h"
#include "schemas/messages/message.h"
#include "common/loop/loop.h"

enum {
    HANDLER_MESSAGE_MAX = 32 << 20, /* bytes of a frame or a line */
    HANDLER_QUEUE_MAX = 64 << 20,
    HANDLER_READ_MAX = 1 << 20
};

/* How a connection is broken. */
enum connection_break {
    CONNECTION_CLOSED, /* the handler closed its socket, or ended */
    CONNECTION_FAULT   /* it sent what is no message, does not read, or there is no memory */
};

/* A message of a handler; it borrows from `bytes`. */
struct handler_message {
    enum message_id id;
    union any_message as;
    struct buffer bytes;
};
void handler_message_finish(struct handler_message *message);

struct connection {
    int fd;     /* -1 once closed */
    int out_fd; /* what is sent goes there: fd, or a socket of its own */
    bool is_lines;
    struct loop *loop;
    struct loop_watch *watch, *out_watch;
    struct buffer in, out;
    size_t out_at, scanned; /* sent of `out`; bytes of `in` that hold no end of a line */
    bool wants_out;
    struct loop_soon soon; /* broken while sending: told at the loop's next turn */
    enum connection_break how;
    struct fail why;
    /* Takes the message, and may close the connection. */
    void (*heard)(void *arg, struct handler_message *message);
    void (*broken)(void *arg, enum connection_break how, const char *why);
    void *arg;
};

/* Watches `fd` (a stream socket, not blocking) and owns it, and `out_fd`, another one, if that is not -1: what is sent
 * goes there. The caller has set is_lines, heard, broken and arg. False when out of memory: they are closed. */
bool connection_open(struct connection *connection, struct loop *loop, int fd, int out_fd);
void connection_close(struct connection *connection); /* idempotent; nothing is told */

/* Takes what is there to be read now: of a handler that has ended. */
void connection_drain(struct connection *connection);
/* Whether one more message of any size can be queued, so that who sends it is not taken for one that does not read. */
bool connection_has_room(const struct connection *connection);
/* Sends, or queues what the socket does not take. False with a refusal: it is no message; nothing was sent. */
bool connection_send(struct connection *connection, enum message_id id, const void *message, struct refusal *no);

#endif
