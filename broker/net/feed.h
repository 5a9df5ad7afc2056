/*
 * feed.h - FEED: who hears what. A trainer hears streams that are its own (core_may_read), by the
 * exact topic t/<stream>/, whose last byte no stream's name may hold: so a subscription to one
 * stream is no prefix of another's. An admin subscribes to what it likes.
 *
 * It is an XPUB in manual mode. libzmq keeps what is read and the connection it came over in two
 * queues, and a frame that is no subscription, which only a foreign client sends, puts the second
 * out of step: what is read from there on would subscribe somebody else. Both queues are empty
 * when nothing is left to read; so after such a frame everything is ignored up to there.
 *
 * libzmq keeps every topic that was ever asked for, accepted or not, while the connection lasts.
 * Beyond FEED_TOPICS_MAX bytes of them all connections are dropped (they come back by themselves,
 * and clients fetch what they missed) and whoever asked for most is not heard for FEED_BAN_MS.
 * Who listens to which stream is counted by its topic: a stream that was only ever asked for is free again
 * FEED_GRACE_MS after its last listener went (core_nobody_reads); who comes back meanwhile finds it.
 * They are dropped, too, when somebody who was known is known no longer.
 */
#ifndef SLUICE_BROKER_NET_FEED_H
#define SLUICE_BROKER_NET_FEED_H

#include "broker/net/conn_limit.h"
#include "broker/net/auth.h"

enum {
    FEED_TOPICS_MAX = 1 << 20,  /* bytes of topics asked for */
    FEED_STREAMS_MAX = 1 << 17, /* streams whose listeners are counted; beyond, the same happens */
    FEED_BAN_MS = 600000,
    FEED_GRACE_MS = 5000
};

struct feed;

/* Takes the XPUB, bound to `endpoint`. NULL when out of memory. */
struct feed *feed_create(void *xpub, const char *endpoint, const struct auth *auth);
/* Closes the socket. */
void feed_destroy(struct feed **feed);
void *feed_socket(const struct feed *feed);

/* Takes what subscribers asked for; false when there may be more to read. */
bool feed_take(struct feed *feed, struct core *core, struct conn_limit *conns, int64_t now_ms);
/* Takes the frame. Subscribers that do not read miss it. Negative errno: nobody got it. */
int feed_publish(struct feed *feed, struct slice stream, zmq_msg_t *body);

#endif
