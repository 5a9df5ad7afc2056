/*
 * http_call.h - one HTTP request as the gateway works on it: who asks, what for, the one thing it asks the broker
 * about at a time, and its answer. It begins with the request's head and ends when the client has its answer, or is
 * gone: a handler's callbacks are never called after `end`.
 */
#ifndef SLUICE_CLIENT_GATEWAY_HTTP_CALL_H
#define SLUICE_CLIENT_GATEWAY_HTTP_CALL_H

#include <jansson.h>

#include "client/gateway/broker/identities.h"
#include "client/gateway/gateway.h"
#include "client/gateway/json_text.h"
#include "client/gateway/route.h"
#include "common/http/exchange.h"
#include "common/http/exchange_answer.h"

enum { HTTP_CALL_WAIT_MS = 10000 }; /* for the broker's answer */

/* A reason of the gateway's own: what was asked for went with the broker's earlier ledger. 503: to be asked again. */
#define HTTP_CALL_LEDGER_REPLACED "ledger-replaced"

struct http_call {
    struct gateway *gateway;
    struct exchange *exchange;
    const struct route_family *family; /* NULL: no API knows its path */
    const struct route *route;         /* NULL: the family has none for it */
    void *kept;                        /* the family's */
    struct route_params params;
    struct identity *identity; /* NULL: of an open route */
    json_t *body;              /* of one that takes an object; NULL: there was none */
    int64_t began_us;
    struct caller_ask ask;
    void (*answered)(struct http_call *call, const struct answer *answer);
    void (*admitted)(struct http_call *call); /* what it goes on with (door/admission.h) */
    bool is_delivered;                        /* at its end: the client has all of its answer */
    bool is_stream;                           /* its answer is a stream of events (sse.h) */
    bool takes_refusals;                      /* `answered` is told of refusals, too */
    void *state;                              /* its handler's ... */
    void (*end)(struct http_call *call);      /* ... which frees it; NULL: there is nothing to free */
};

/* The head of a request is there. NULL: out of memory, which is answered. */
struct http_call *http_call_begin(struct gateway *gateway, struct exchange *exchange);
/* All of it is there: its body is read and its handler runs. */
void http_call_run(struct http_call *call);
/* The client has its answer, or is gone. */
void http_call_finish(struct http_call *call);

/* A part of its path by the pattern's name; empty: its pattern has none. */
struct slice http_call_part(const struct http_call *call, const char *name);
/* The same, NUL-terminated; false: too long, which is refused. */
bool http_call_param(struct http_call *call, const char *name, char *ret, size_t size);

/*
 * Asks the broker. `answered` hears the answer; what is wrong with the message, a refusal (unless takes_refusals), a
 * key that the broker does not take, and a broker that is silent are answered here. The message's tag is set here.
 */
void http_call_ask(struct http_call *call, enum message_id id, void *in,
                   void (*answered)(struct http_call *, const struct answer *));

void http_call_answer(struct http_call *call, int status, const char *content_type, struct buffer *body);
void http_call_answer_json(struct http_call *call, int status, struct buffer *body);
/* In the family's form. */
void http_call_refuse(struct http_call *call, int status, const char *reason, const char *field, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));
void http_call_refuse_as(struct http_call *call, const struct msg_refused *refused);
void http_call_refuse_memory(struct http_call *call);
/* The broker did not answer: 503, or 401 where it does not take the key. */
void http_call_refuse_silence(struct http_call *call);
/* The status of HTTP for a reason's name. */
int http_call_status_of(struct slice reason);

#endif
