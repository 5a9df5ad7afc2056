/*
 * curve.h - ZeroMQ sockets that prove who they are (CURVE), and what became of their handshakes.
 *
 * libzmq gives up a connecting socket for good when a handshake is refused: whoever hears
 * HANDSHAKE_REFUSED, _MISMATCH or _BAD_KEY makes a new socket when it wants to try again.
 */
#ifndef SLUICE_COMMON_NET_CURVE_H
#define SLUICE_COMMON_NET_CURVE_H

#include <stdbool.h>

#include "common/net/keys.h"

/* Before bind or connect; negative errno. A server is who asks the ZAP handler, as `domain`. */
int curve_serve(void *socket, const struct key *key, const char *domain);
int curve_use(void *socket, const struct key *key);

/* Nobody but this machine's own users can listen in: ipc, and tcp on loopback. */
bool endpoint_is_local(const char *endpoint);

enum handshake {
    HANDSHAKE_NONE, /* nothing new */
    HANDSHAKE_DONE,
    HANDSHAKE_REFUSED,  /* the other side does not know this key, or not in this role */
    HANDSHAKE_MISMATCH, /* one side speaks CURVE and the other plaintext */
    HANDSHAKE_BAD_KEY,  /* the other side does not hold the key that was expected */
    HANDSHAKE_BROKEN,   /* ended before it was done; libzmq tries again */
    HANDSHAKE_LOST      /* the connection ended; libzmq tries again where it had connected */
};

/* Hears of one socket's handshakes. The zero value is closed. */
struct handshakes {
    void *monitor; /* readable when there is news */
};

/* Before bind or connect. Negative errno. */
int handshakes_open(struct handshakes *handshakes, void *context, void *socket);
/* Before the socket is closed. */
void handshakes_close(struct handshakes *handshakes, void *socket);
/* The next thing that happened. */
enum handshake handshakes_next(struct handshakes *handshakes);

#endif
