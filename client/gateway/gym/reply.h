/*
 * reply.h - what is answered to POST /v1/responses, whoever made it: a whole response, its events as a stream, or an
 * error in the API's own words.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_REPLY_H
#define SLUICE_CLIENT_GATEWAY_GYM_REPLY_H

#include "client/gateway/gym/response.h"
#include "client/gateway/sse.h"

/* In a struct of the call's handler; all zero before its first use. */
struct reply {
    struct http_call *call;
    json_t *params; /* the request, owned */
    bool with_tokens, is_stream;
    uint64_t number; /* of the stream's next event */
    struct sse sse;
    struct buffer events; /* of its end: all go out at once, as each of them repeats what may be large */
};

/* Takes the call's body; a stream begins. */
void reply_begin(struct reply *reply, struct http_call *call);
void gym_reply_finish(struct reply *reply);
/* What a response repeats of the request. */
struct response_asked reply_asked(const struct reply *reply);
/* An item of a stream, which goes out with the end; nothing where it is none. */
void reply_item(struct reply *reply, size_t index, struct slice item);
/* The end: the response, whose bytes are taken. */
void reply_whole(struct reply *reply, struct buffer *response);
void reply_refuse(struct reply *reply, int status, const char *code, const char *words);
/* The same where there is no reply yet. */
void reply_refuse_call(struct http_call *call, int status, const char *code, const char *words);

#endif
