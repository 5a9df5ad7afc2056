/*
 * batch.h - what goes to the ledger at once: effects of the core, the messages that they borrow from, and what the
 * ledger gives for those effects that send what it keeps. It is filled by the thread of the sockets (intake.c), done by
 * one that has the ledger (batch.c), and sent by the first again (effects.c).
 */
#ifndef SLUICE_BROKER_IO_BATCH_H
#define SLUICE_BROKER_IO_BATCH_H

#include <stdatomic.h>
#include <sys/queue.h>
#include <zmq.h>

#include "broker/ledger/ledger.h"
#include "broker/net/auth.h"

enum {
    INBOUND_MAX = 512,            /* messages of one cycle, half of them of each socket ... */
    INBOUND_BYTES_MAX = 16 << 20, /* ... and their bytes, beyond the last */
    RANGE_BYTES_MAX = 8 << 20,    /* of one stream.fetch's answer, beyond the first */
    FRONT_HELD_MAX = 256 << 20,   /* trajectories that clients have asked for and not read, and likewise ... */
    ANSWER_LARGE = 8192,          /* ... all other answers that are larger than this */
    FEED_HELD_MAX = 128 << 20     /* trajectories published that a subscriber has not read */
};

/* A message, or a bundle, that was handled. */
struct inbound {
    zmq_msg_t from, body;     /* `from`: the client's identity; empty for a worker */
    char name[KEY_NAME_SIZE]; /* of its key */
    struct caller caller;     /* who sent it ... */
    bool may_come_in;         /* ... if the broker still knows the key */
};

/* A message that an effect sends, made of what the ledger keeps. */
struct loaded {
    STAILQ_ENTRY(loaded) link;
    size_t effect;     /* its place */
    struct slice task; /* a job's: the job.task before it, which the batch has; empty: none */
    zmq_msg_t body;
};

/* A job.task of jobs of the batch. */
struct loaded_task {
    STAILQ_ENTRY(loaded_task) link;
    struct buffer bytes;
};

STAILQ_HEAD(loaded_list, loaded); /* in the effects' order */

struct batch {
    struct effect_list effects;
    uint64_t lane_changes; /* as core_lane_changes said when the effects were taken */
    struct inbound *inbound;
    size_t inbound_count, inbound_bytes;
    size_t loads;      /* trajectories that messages ask for, as LOADS_MAX counts them */
    size_t work, seen; /* how many of the core's effects are the ledger's, of as many as were looked at */
    struct buffer out; /* the message being made */

    /* When it was done: */
    bool is_writing, is_reading;      /* in a transaction */
    struct loaded_list jobs, answers; /* what goes to workers, and all else */
    STAILQ_HEAD(, loaded_task) tasks;
    struct commit_point commit; /* the last one there was */
    int code;                   /* what the ledger failed with */
    struct fail fail;
};

/* Bytes that sockets hold, because they are not read: of trajectories, and of other large answers. */
struct held_bytes {
    atomic_size_t front, feed, answers;
};

/* NULL when out of memory. */
struct batch *batch_create(void);
void batch_destroy(struct batch **batch);
void batch_clear(struct batch *batch);
/* Lets go of the message that was added last: nothing borrows from it. */
void inbound_drop(struct inbound *inbound);

/* How many of the effects that it is filled with are the ledger's to do: the others are only sent. */
size_t batch_count_work(struct batch *batch, struct effects effects);
/* Persists, then loads, in the effects' order: one transaction, ... */
void batch_do(struct batch *batch, struct ledger *ledger, struct held_bytes *held);
/* ... and commits it. Jobs may leave before this (handover.c). */
void batch_commit(struct batch *batch, struct ledger *ledger);

/* ---- io/list.c ----------------------------------------------------------------------- */

/* Makes `ret` the answer to SEND_LIST. */
int batch_list(struct ledger *ledger, const struct effect *effect, struct buffer *ret, struct fail *fail);

#endif
