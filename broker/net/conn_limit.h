/*
 * conn_limit.h - how many may be connected, and how much one may send without ending a message.
 *
 * libzmq accepts whoever comes until there are no more descriptors, and keeps the frames of a
 * message that does not end. How many they may be is seen to by multipart.h; how many bytes, here, as
 * connections are heard of (socket monitor):
 *   beyond `max` of all three sockets together, listening ports drop new ones (their SYN, by a socket
 *   filter: the peer tries again) until an eighth of the places are free; whoever does not end its
 *   handshake in time (HANDSHAKE_IVL) makes room;
 *   one that has sent more bytes than its socket's longest message since the last message that was
 *   read of it, while nothing else is left to read, is shut down; where something always is, one that has
 *   sent more than its socket's mark of such messages;
 *   where room is wanted for what waits to be sent, one that has taken less than CONN_LIMIT_SLOW_BYTES in
 *   CONN_LIMIT_SLOW_MS, and had more to take all the time, is shut down.
 * For ipc only the counting holds: who may connect there is a matter of the directory's mode.
 */
#ifndef SLUICE_BROKER_NET_CONN_LIMIT_H
#define SLUICE_BROKER_NET_CONN_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <zmq.h>

struct conn_limit;

enum { CONN_LIMIT_SOCKETS = 3, CONN_LIMIT_LOOK_MS = 250, CONN_LIMIT_SLOW_MS = 2000, CONN_LIMIT_SLOW_BYTES = 16 << 20 };

/* `max` is lowered to what the limit of descriptors leaves room for. NULL when out of memory. */
struct conn_limit *conn_limit_create(void *context, size_t max);
/* After the sockets are closed. NULL-safe. */
void conn_limit_destroy(struct conn_limit **conns);

/*
 * Before the socket is bound; message_max: of its messages, in bytes; read_mark: its ZMQ_RCVHWM. Returns its place,
 * or -errno.
 */
int conn_limit_watch(struct conn_limit *conns, void *socket, int64_t message_max, int read_mark);
/* Before the socket is closed. */
void conn_limit_leave(struct conn_limit *conns, int place);

/* Readable when somebody came or went. */
void *conn_limit_monitor(const struct conn_limit *conns, int place);

/* A message was read of the connection that this frame came by. */
void conn_limit_heard(struct conn_limit *conns, zmq_msg_t *frame);
/* Shuts down the connection that this frame came by; `why` is for the log. */
void conn_limit_shut_down(struct conn_limit *conns, zmq_msg_t *frame, const char *why);
/* As much as may waits to be sent by the socket of this place; to be said again for as long as that is so. */
void conn_limit_want_room(struct conn_limit *conns, int place);
/* Takes who came and went. `is_drained[place]`: nothing was left to read of that socket. */
void conn_limit_take(struct conn_limit *conns, const bool is_drained[CONN_LIMIT_SOCKETS], int64_t now_ms);

size_t conn_limit_count(const struct conn_limit *conns);

#endif
