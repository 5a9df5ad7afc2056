/*
 * outgoing.h - what the gateway sends to others: one POST of JSON, once, without following redirects, of which nobody
 * hears again than how it ended. Whoever calls it has asked whether it may go there (door/engines.h).
 */
#ifndef SLUICE_CLIENT_GATEWAY_OUTGOING_OUTGOING_H
#define SLUICE_CLIENT_GATEWAY_OUTGOING_OUTGOING_H

#include "common/base/buffer.h"
#include "common/loop/loop.h"

enum { OUTGOING_WAIT_MS = 10000, OUTGOING_MAX = 256 };

struct outgoing;

/* NULL: out of memory. */
struct outgoing *outgoing_open(struct loop *loop);
/* What is under way is given up, and nobody is told. NULL-safe. */
void outgoing_close(struct outgoing **outgoing);
/*
 * Takes the body. `ended` is told, later, the status, or 0 and why there was none. False: too much is under way, or out
 * of memory.
 */
bool outgoing_post(struct outgoing *outgoing, const char *url, struct buffer *body,
                   void (*ended)(void *arg, int status, const char *why), void *arg);

#endif
