/* run_place.h - a rollout of runs.h as it is kept in mind, and the stream of an identity that they end in. */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_RUN_PLACE_H
#define SLUICE_CLIENT_GATEWAY_RUNS_RUN_PLACE_H

#include "client/gateway/api/tail.h"
#include "client/gateway/runs/had.h"
#include "client/gateway/runs/run_numbers.h"
#include "client/gateway/runs/runs.h"

enum place_state {
    PLACE_ASKED, /* its submit is not answered yet */
    PLACE_LIVE,
    PLACE_ENDED
};

/* A rollout, from its submit, or from when the stream told of it, to the acknowledgement of its trajectory. */
struct run_place {
    struct runs_of *of;
    char name[HAD_NAME_SIZE]; /* of its group */
    char base[HAD_NAME_SIZE]; /* without its number; "": it is from before the gateway's start */
    unsigned number;
    enum place_state state;
    bool is_had, is_told, is_cancelled, takes_over;
    bool is_unsure;        /* its submit was not answered: it may be at the broker, or not */
    bool is_doubtful;      /* the broker was started again: whether it still knows it is to be asked */
    bool is_gone;          /* it ended, in a ledger that was replaced: dropped once nobody waits */
    struct run_wait *wait; /* NULL: its caller is gone */
    int64_t alone_ms;      /* since when nobody waits */
    uint64_t seq;          /* 0: not ended, or the stream has not told yet */
    struct list ended;     /* in the order of their numbers */
    struct buffer id, task;
    struct caller_ask ask;
};

/* Of one identity. */
struct runs_of {
    struct runs *runs;
    struct identity *identity;
    char stream[80];
    struct tail_reader reader;
    struct table places; /* by name */
    struct run_numbers numbers;
    struct list ended, link;
    struct caller_ask ack;
    uint64_t acking;                       /* the number that is being acknowledged */
    int64_t idle_ms;                       /* since when it has no place */
    void (*lose)(struct run_place *place); /* of run_doubts.h */
    void (*cancel)(struct run_place *place);
};

struct runs {
    struct gateway *gateway;
    size_t users;
    struct tails *tails;
    struct had *had;
    struct list each;
    struct loop_timer *sweep;
};

/* One of that name, which is not there yet. NULL: out of memory. */
struct run_place *run_place_add(struct runs_of *of, const char *name);
void run_place_drop(struct run_place *place);
/* Asks the broker what it knows of it, and nothing else any more. */
void run_place_get(struct run_place *place, void (*answered)(void *arg, const struct answer *answer));

#endif
