/*
 * waiting.h - a call that waits for one rollout of a task (runs/runs.h), whatever becomes of the broker meanwhile:
 * while it is away, or takes no more work, the submit is tried again. A client that hangs up and comes again with the
 * same gets the same rollout.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_WAITING_H
#define SLUICE_CLIENT_GATEWAY_GYM_WAITING_H

#include "client/gateway/http_call.h"
#include "client/gateway/runs/runs.h"

/* In a struct of who waits; all zero before its first use. */
struct waiting {
    struct http_call *call;
    struct runs *runs;
    struct run_wait wait;
    struct loop_timer *again;
    struct buffer id, task; /* what makes it the same, and what is submitted */
    bool is_own;            /* never one that another began */
    void (*ended)(struct http_call *call, const struct sluice_trajectory *trajectory);
    /* It never will: the broker refused it, or what it recorded cannot be read. */
    void (*failed)(struct http_call *call, const char *reason, const char *words);
};

/* Once id, task and the callbacks are set. */
void waiting_begin(struct waiting *waiting, struct http_call *call, struct runs *runs);
/* The call ends: the rollout's answer was had, or may be taken over. */
void waiting_end(struct waiting *waiting);

#endif
