/*
 * runs.h - rollouts for callers who know no streams: each is a group of one whose name follows from what was asked, and
 * its caller waits for the end. Nothing of it is lost with the gateway: the same asked again finds the same rollout.
 *
 * What is asked (an id and a content) may be asked by several callers at once, who then get a rollout each: the names
 * are numbered. A caller takes over a rollout of that name whose own caller is gone and never had the answer, or begins
 * one. A rollout whose caller is gone is cancelled after settings->orphan_ms, unless somebody takes it over.
 *
 * They are in a stream of their own for each identity, and trajectories are acknowledged in order as their answers are
 * delivered; those whose callers are gone after orphan_ms, and those that nobody asked for, from before the gateway's
 * start, after RUNS_UNCLAIMED_MS.
 */
#ifndef SLUICE_CLIENT_GATEWAY_RUNS_RUNS_H
#define SLUICE_CLIENT_GATEWAY_RUNS_RUNS_H

#include "client/gateway/http_call.h"

enum { RUNS_UNCLAIMED_MS = 600000 };

struct runs;
struct run_place;

/* In a struct of who waits; all zero before its first use. */
struct run_wait {
    struct run_place *place; /* NULL: it does not wait */
    struct runs *runs;
    /* It has ended: the call ends its waiting by run_had or run_leave. */
    void (*ended)(void *arg, const struct msg_trajectory *trajectory);
    /* It cannot be: refused (NULL: the broker is silent, or does not take the key). It waits no longer. */
    void (*failed)(void *arg, const struct msg_refused *refused);
    void *arg;
};

struct run_plan {
    struct identity *identity;
    const char *prefix;       /* of names: "prorl" */
    struct slice id, content; /* what makes it the same; of any bytes */
    struct slice task;        /* as submitted */
    bool takes_over;          /* false: always one of its own that nobody waits for yet, nor had */
};

/* The same for each family that opens it; each closes it. */
struct runs *runs_open(struct gateway *gateway, struct fail *fail);
void runs_close(struct runs **runs);
/* False: out of memory. */
bool run_begin(struct runs *runs, const struct run_plan *plan, struct run_wait *wait);
/* Its group's name, once there is one; "" before. */
const char *run_name(const struct run_wait *wait);
/* The caller has the answer. */
void run_had(struct run_wait *wait);
/* The caller is gone without it: may be taken over. cancel: at once ended. May be called twice. */
void run_leave(struct run_wait *wait, bool cancel);
/* How many wait of that identity, whose rollout's id is that one: for cancelling; each is told by its own `ended`. */
size_t runs_cancel(struct runs *runs, const struct identity *identity, struct slice id);
/* Names of a family's own, kept on disk as those of answers that were had are, until they are removed. */
bool runs_note(struct runs *runs, const char *name);
bool runs_has_noted(const struct runs *runs, const char *name);
void runs_remove_note(struct runs *runs, const char *name);

#endif
