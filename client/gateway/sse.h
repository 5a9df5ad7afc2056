/*
 * sse.h - server-sent events: a stream of `event`, `id` and one line of data, kept alive by comments. A client that
 * takes nothing is dropped: it comes back by itself, and goes on from the id that it had last.
 */
#ifndef SLUICE_CLIENT_GATEWAY_SSE_H
#define SLUICE_CLIENT_GATEWAY_SSE_H

#include "client/gateway/http_call.h"

enum { SSE_ALIVE_MS = 15000 };

struct sse {
    struct http_call *call;
    struct loop_timer *alive;
    uint64_t sent_before; /* bytes, when it was last kept alive */
    bool is_dropped, is_ended;
};

/* The stream begins. The call must stay until sse_finish. */
void sse_begin(struct sse *sse, struct http_call *call);
/* id 0: none. Line ends in the data become blanks, as JSON has none in strings. */
void sse_send(struct sse *sse, const char *event, uint64_t id, struct slice data);
void sse_send_text(struct sse *sse, const char *event, struct buffer *data); /* empties it */
/* One more event behind others that go out together: who is up to date is given them whatever their size. */
void sse_append(struct buffer *out, const char *event, uint64_t id, struct slice data);
void sse_send_all(struct sse *sse, struct buffer *events); /* empties it */
/* Whether its client has taken most of what was sent. */
bool sse_has_room(const struct sse *sse);
void sse_end(struct sse *sse);
void sse_finish(struct sse *sse);
/* The number that a client that comes back had last, or `otherwise`. False: it is none, which is refused. */
bool sse_last_id(struct http_call *call, uint64_t otherwise, uint64_t *ret);

#endif
