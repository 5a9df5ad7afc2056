/*
 * identities.h - who comes in, by token: each has a connection to the broker under its own key, so that the broker
 * decides what it may, and the gateway has no right of its own to lend. Who brings no token has the identity of
 * callers without one, if the operator gave such a key.
 *
 * A token that the broker refused is refused for REFUSED_MS without asking it again, so that guessing costs the broker
 * little. A connection that nobody has used for IDLE_MS is closed; of IDENTITIES_MAX, one that nobody uses makes room
 * for a token that is new, so that guesses keep nobody out.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_IDENTITIES_H
#define SLUICE_CLIENT_GATEWAY_BROKER_IDENTITIES_H

#include "client/gateway/broker/topics.h"

enum { IDENTITIES_MAX = 1024, IDENTITY_REFUSED_MS = 5000, IDENTITY_IDLE_MS = 60000 };

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
    enum key_role role; /* as its token says: to be shown, not to be relied upon */
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
/* Once before each wait of the loop. */
void identities_work(struct identities *identities);

#endif
