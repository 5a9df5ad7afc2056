/*
 * looks.h - looks into the ledger for groups that clients name and the core may not remember. While the ledger's thread
 * has the ledger, a message that needs one is held; before the ledger is handed over, all that were read by then are
 * looked for. What was found is true until the next handing over: only then does the core forget names.
 */
#ifndef SLUICE_BROKER_IO_LOOKS_H
#define SLUICE_BROKER_IO_LOOKS_H

#include <sys/queue.h>
#include <zmq.h>

#include "broker/io/turns.h"
#include "broker/ledger/ledger.h"

/* Part of a message that waits for its turn. */
struct look {
    TAILQ_ENTRY(look) link;
    zmq_msg_t *body;
    struct turn_inbound *turn;
    const char *field; /* of the message, that names the group; NULL: no look is needed */
    bool was_found;    /* it is of the past ... */
    uint64_t hash;     /* ... and this was its content (task_summary_hash) */
};

TAILQ_HEAD(looks, look);

/* Of a rollout's name, GROUP/NUMBER; all of what is none. */
struct slice group_of_rollout(struct slice rollout);

/* A client's message was read. Where the ledger is not in hand, it is held if it needs a look. */
void look_begin(struct look *look, struct looks *looks, zmq_msg_t *body, struct turn_inbound *turn, bool has_ledger);
/* It has its turn, or is dropped. */
void look_end(struct look *look, struct looks *looks);

/* Looks for all of them. Negative: the ledger failed. */
int looks_ahead(struct looks *looks, struct ledger *ledger, struct fail *fail);
/* The ledger is in hand, and looks can be made when they are needed. */
void looks_release(struct looks *looks);

#endif
