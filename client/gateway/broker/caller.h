/*
 * caller.h - one who asks the broker: a connection under one key, or none, with any number of requests under way. What
 * libsluice does while it waits is done here on the loop, so that nobody waits for anybody else.
 *
 * Requests are idempotent: one that stays unanswered is sent again, with the same tag, until its time is over. The
 * broker decides what a key may do; here it is only told who asks.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_CALLER_H
#define SLUICE_CLIENT_GATEWAY_BROKER_CALLER_H

#include "client/lib/request.h"
#include "common/containers/heap.h"
#include "common/loop/loop.h"

struct caller;

struct caller_plan {
    struct loop *loop;
    const char *url;       /* of the broker's FRONT */
    const struct key *key; /* NULL: none */
    bool allow_plaintext;
};

/* NULL: out of memory. Connecting is lazy, and goes on by itself. */
struct caller *caller_open(const struct caller_plan *plan);
/* Nothing is under way any more. NULL-safe. */
void caller_close(struct caller **caller);
/* Its key's public half, which nobody else can claim; "" without a key. */
const char *caller_public(const struct caller *caller);
/*
 * Digits that only who has its key's secret can tell: a name that they are a part of nobody else can take first. ""
 * without a key.
 */
const char *caller_mark(const struct caller *caller);
/* The broker does not take its key, or wants one: why, in words; else NULL. */
const char *caller_refused(const struct caller *caller);
/* What could not be sent, or was not answered: a sentence for whoever asked. */
const char *caller_trouble(struct caller *caller);

/*
 * One request under way, in a struct of who asks; all zero before its first use. `answered` is called for the answer,
 * for each one of several (stream.fetch: trajectories, and then where the stream stands), and with NULL when there was
 * none in time, or the key was refused. From the last of these calls on it is not under way.
 */
struct caller_ask {
    struct caller *caller; /* NULL: not under way */
    struct request request;
    bool is_fetch, is_lasting;
    int64_t ends_ms;
    struct heap_node due, end;
    void (*answered)(void *arg, const struct answer *answer);
    void *arg;
};

/* To be put into the message's tag. */
uint64_t caller_next_tag(struct caller *caller);
/* `in` is a struct msg_<id> with that tag. False with a refusal: it breaks the schema. It is under way otherwise. */
bool caller_ask(struct caller *caller, struct caller_ask *ask, enum message_id id, const void *in, uint64_t tag,
                int64_t wait_ms, struct refusal *no);
/* The same for rollout.watch: sent again every 5 s, and every answer is told, until it is forgotten or fails. */
bool caller_watch(struct caller *caller, struct caller_ask *ask, enum message_id id, const void *in, uint64_t tag,
                  struct refusal *no);
/* `answered` is not called any more. May be called twice. */
void caller_forget(struct caller_ask *ask);

/* Once before each wait of the loop: reads what came and sends what is due. */
void caller_work(struct caller *caller);

/* For FEED: a socket of its context with its key; NULL with errno. `made` changes whenever it has to be made anew. */
void *caller_subscriber(struct caller *caller);
uint64_t caller_made(const struct caller *caller);

#endif
