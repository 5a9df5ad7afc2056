/*
 * tail.h - a stream's trajectories in order, each once, for any number of readers of one identity: the newest are
 * fetched once for all who are up to date, and readers behind fetch what they lack by themselves. FEED only says that
 * there is more, so nothing that it drops is missed.
 *
 * A broker that was started again may have another ledger, an older back-up or an emptied one. Its heads tell, or the
 * number that was read last, which is another rollout now (client/lib/stream/seen.h): then each reader begins anew.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_TAIL_H
#define SLUICE_CLIENT_GATEWAY_API_TAIL_H

#include "client/gateway/broker/identities.h"

enum { TAIL_FETCH = 32 /* trajectories at a time */ };

struct tails; /* of all streams that are read */
struct tail;

/* One trajectory as it is told to readers; what it is rendered to is kept for the next of them. */
struct told {
    const struct msg_trajectory *message;
    struct buffer whole, summary; /* empty: not rendered yet */
};

/* In a struct of who reads; all zero before its first use. */
struct reader_plan {
    void (*took)(void *arg, struct told *told);
    /* The stream stands there now, and the reader is up to date. NULL: nobody cares. */
    void (*stands)(void *arg, const struct msg_stream_head *head);
    /* It cannot go on: refused by the broker, such as for numbers no longer kept; NULL: the key is not taken. */
    void (*failed)(void *arg, const struct msg_refused *refused);
    /* Whether it has room for more; asked again a little later. NULL: always. */
    bool (*has_room)(void *arg);
    /* The broker was started again, with the same ledger as far as can be seen. NULL: nobody cares. */
    void (*restarted)(void *arg);
    /*
     * The stream is of another ledger than what was read, and stands there: the reader goes on at the number that is
     * returned; 0: the oldest kept. NULL: that.
     */
    uint64_t (*replaced)(void *arg, const struct msg_stream_head *head);
    bool has_read; /* the number before the first is one that it has read: where there is none, the ledger is another */
    void *arg;
};
struct tail_reader {
    struct tail *tail; /* NULL: it reads none */
    struct reader_plan plan;
    uint64_t next;
    bool is_live;     /* it is told what the tail fetches */
    bool is_doubtful; /* whether what it has read is of this ledger is not known yet */
    struct caller_ask ask;
    struct list link;
};

struct tails *tails_open(struct loop *loop);
void tails_close(struct tails **tails);
/* From number `from` on; 0: the oldest kept. False: out of memory. */
bool tail_read(struct tails *tails, struct identity *identity, const char *stream, uint64_t from,
               const struct reader_plan *plan, struct tail_reader *reader);
/* May be called twice, also in its own callbacks. */
void tail_leave(struct tail_reader *reader);

#endif
