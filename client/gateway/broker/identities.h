/*
 * identities.h - who comes in, by token: each has a connection to the broker under its own key, so that the broker
 * decides what it may, and the gateway has no right of its own to lend. Who brings no token has the identity of
 * callers without one, if the operator gave such a key.
 *
 * A token is believed nothing. Until the broker has said whose key it is (identities_know), it is one of a few that
 * are asked about, so that a flood of forged ones costs the broker no more connections than these. One that was
 * refused has no connection, and is refused for REFUSED_MS without asking again. A connection that nobody has used for
 * IDLE_MS is closed. Where there are as many of a kind as may be, the one of these that was used last the longest ago,
 * and is not in use, makes room for a new one: so guesses neither keep others out nor displace any that is known.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_IDENTITIES_H
#define SLUICE_CLIENT_GATEWAY_BROKER_IDENTITIES_H

#include "client/gateway/broker/topics.h"

enum {
    IDENTITIES_MAX = 1024,     /* that are known; as many are remembered as refused */
    IDENTITIES_ASKED_MAX = 64, /* of which the broker has not said anything */
    IDENTITY_REFUSED_MS = 5000,
    IDENTITY_IDLE_MS = 60000
};

struct identities;

struct identities_plan {
    struct loop *loop;
    const char *url;             /* of the broker's FRONT */
    const struct key *own;       /* the gateway's key, which names the broker's; NULL: the broker asks for none */
    const struct key *anonymous; /* of who brings no token; NULL: without `own` nobody's, else those are refused */
    bool allow_plaintext;
};

struct identity {
    struct caller *caller;
    struct topics *topics;
    bool is_known; /* the broker has taken its key, and said: */
    bool is_admin;
    char name[KEY_NAME_SIZE]; /* "" where nobody is asked for a key */
    size_t uses;
};

/* NULL: out of memory. */
struct identities *identities_open(const struct identities_plan *plan);
void identities_close(struct identities **identities);
/* The gateway's own; never NULL. */
struct identity *identities_own(struct identities *identities);
/*
 * Whose token that is; token NULL: none came. NULL: *why, a sentence, and *status of HTTP, 401, or 503 where there are
 * too many. Each find is given back.
 */
struct identity *identities_find(struct identities *identities, const char *token, int *status, const char **why);
void identities_give_back(struct identities *identities, struct identity *identity);
/* The broker has taken the key of one that is in use, and says as whose. */
void identities_know(struct identities *identities, struct identity *identity, const char *name, bool is_admin);
/* Once before each wait of the loop. */
void identities_work(struct identities *identities);

#endif
