/* tail_reader.h - one reader of a tail: what it lacks it fetches by itself, until it is up to date. */
#ifndef SLUICE_CLIENT_GATEWAY_API_TAIL_READER_H
#define SLUICE_CLIENT_GATEWAY_API_TAIL_READER_H

#include "client/gateway/api/tail.h"
#include "client/lib/stream/seen.h"
#include "schemas/messages/message_max.h"

/* A number that was read, and what it was. */
struct tail_mark {
    uint64_t seq; /* 0: none was */
    char rollout[MESSAGE_MAX(trajectory, rollout) + 1];
    uint64_t ended_ms;
};

struct tail {
    struct tails *tails;
    struct identity *identity;
    char stream[80];
    struct list readers, link;
    struct list *following; /* while readers are told: who is next */
    unsigned holds;         /* it stays as long, also without a reader */
    struct listening feed;
    uint64_t next;             /* what it fetches next */
    struct msg_stream_head at; /* where the stream stands, as last heard */
    struct seen seen;          /* of the ledger that is read */
    struct tail_mark newest;   /* that any reader was told ... */
    struct tail_mark sure;     /* ... and that a head has said to be of that ledger */
    bool is_known, is_wanted;
    bool checks;  /* what is fetched now is `sure`, after a new start ... */
    bool differs; /* ... and it was another */
    struct caller_ask ask;
    int64_t heard_ms;
};

struct tails {
    struct loop *loop;
    struct loop_timer *step;
    struct list each;
};

bool tail_fetch(struct tail *tail, struct caller_ask *ask, uint64_t from, unsigned limit);
/* Of nobody any more. */
void tail_drop(struct tail *tail);

void reader_init(struct tail_reader *reader, struct tail *tail, const struct reader_plan *plan, uint64_t from);
/* May be called twice. */
void reader_leave(struct tail_reader *reader);
void reader_tell(struct tail_reader *reader, struct told *told);
void reader_fail(struct tail_reader *reader, const struct msg_refused *refused);
/* It lacks what lies between it and the tail. */
void reader_go_on(struct tail_reader *reader);
/* Who has no room falls behind, and fetches by itself what it lacks. */
bool reader_can_be_told(struct tail_reader *reader);
/* The broker was started again, with the tail's ledger. */
void reader_restart(struct tail_reader *reader);
/* What it has read is of another ledger than the tail's. */
void reader_replace(struct tail_reader *reader);

void tail_told_finish(struct told *told);
bool mark_is(const struct tail_mark *mark, const struct msg_trajectory *message);

#endif
