/*
 * outgoing.h - what the gateway sends to others: a POST of JSON, once, without following redirects. Whoever calls it
 * has asked whether it may go there (door/engines.h).
 */
#ifndef SLUICE_CLIENT_GATEWAY_OUTGOING_OUTGOING_H
#define SLUICE_CLIENT_GATEWAY_OUTGOING_OUTGOING_H

#include <stdint.h>

#include "common/base/buffer.h"
#include "common/loop/loop.h"

enum { OUTGOING_MAX = 4096 /* at a time */, OUTGOING_ANSWER_MAX = 32 << 20 };

struct outgoing;

struct outgoing_plan {
    const char *url;
    const char *const *rules; /* what the host's name may lead to (door/engines.h); NULL: anything */
    int64_t wait_ms;
    bool keeps_answer;
    /* The status and, if it is kept, the answer's body; or 0 and why there was none. */
    void (*ended)(void *arg, int status, const char *why, struct slice body);
    void *arg;
};

/* In a struct of who asks; all zero before its first use. */
struct outgoing_post {
    struct outgoing_sent *sent; /* NULL: nothing is under way */
};

/* NULL: out of memory. */
struct outgoing *outgoing_open(struct loop *loop);
/* What is under way is given up, and nobody is told. NULL-safe. */
void outgoing_close(struct outgoing **outgoing);
/*
 * Takes the body. `ended` is called once, later; may be NULL for nobody's. False: too much is under way, or out of
 * memory. A post that is under way by the same struct goes on, and nobody is told of it.
 */
bool outgoing_post(struct outgoing *outgoing, const struct outgoing_plan *plan, struct buffer *body,
                   struct outgoing_post *post);
/* It is given up. May be called twice. */
void outgoing_forget(struct outgoing_post *post);

#endif
