/*
 * request.h - one request with its answer, over the client's FRONT.
 *
 * FRONT is a DEALER with ZMQ_IMMEDIATE: while the broker is away nothing queues up, and a request
 * waits here to be sent. Every request carries a tag; requests are idempotent, so one that stays
 * unanswered is sent again, with the same tag, until the client's timeout. An answer goes to the
 * request whose tag it carries, or to the stream's fetch, or is dropped.
 */
#ifndef SLUICE_CLIENT_LIB_REQUEST_H
#define SLUICE_CLIENT_LIB_REQUEST_H

#include "client/lib/client.h"

/* One message from the broker. Borrows from its frame: answer_finish ends both. */
struct answer {
    zmq_msg_t frame;
    bool has_frame;
    enum message_id id;
    union {
        struct msg_refused refused;
        struct msg_done done;
        struct msg_group_accepted group_accepted;
        struct msg_stream_head stream_head;
        struct msg_rollout_state rollout_state;
        struct msg_status status;
        struct msg_rollouts rollouts;
        struct msg_sampler_state sampler_state;
        struct msg_sampler_batch sampler_batch;
        struct msg_sampler_waits sampler_waits;
        struct msg_session_state session_state;
        struct msg_rollout_events rollout_events;
        struct msg_metrics metrics;
        struct msg_trajectory trajectory;
    } as;
};
uint64_t answer_tag(const struct answer *answer); /* 0 when it has none */
/* Decodes the frame it takes over; false, and the frame gone, if it is none of the above. */
bool answer_read(struct answer *answer, zmq_msg_t *frame);
void answer_finish(struct answer *answer);
/* *to, which holds nothing, takes over what *from holds. */
void answer_move(struct answer *to, struct answer *from);
#define AUTO_ANSWER __attribute__((cleanup(answer_finish))) struct answer

enum {
    REQUEST_AGAIN_FIRST_MS = 500,
    REQUEST_AGAIN_LAST_MS = 4000,
    STOPPED_MS = 1000 /* a wait that took so much longer was no wait: this process stood still */
};

struct request {
    uint64_t tag;
    struct buffer bytes;
    int64_t send_at_ms; /* when to send it (again) */
    int64_t again_ms;   /* how long after that to wait for the answer */
    bool answered;
};
/* Encodes `in`, a struct msg_<id> that carries request->tag. -EINVAL if it breaks the schema. */
int request_make(struct sluice_client *client, struct request *request, enum message_id id, const void *in);
void request_finish(struct request *request);
#define AUTO_REQUEST __attribute__((cleanup(request_finish))) struct request

/* Opens FRONT if need be. */
int front_open(struct sluice_client *client);
/* The bytes are sent if they can be now. */
bool front_try_send(struct sluice_client *client, struct slice bytes);
/* Sends what is due. False when it could not: the broker is away. */
bool front_send_due(struct sluice_client *client, struct request *request, int64_t now_ms);
/* The next message that is an answer; false when there is none now. */
bool front_read(struct sluice_client *client, struct answer *ret);

/*
 * Sends `count` requests and hands each one's answer to `take`, until all are answered.
 * -ETIMEDOUT when no answer came for the client's timeout.
 */
typedef void request_taker(void *arg, size_t index, struct answer *answer);
int requests_run(struct sluice_client *client, struct request *requests, size_t count, request_taker *take, void *arg);
/* One request, one answer, which the caller finishes; a refusal is returned as its errno. */
int request_call(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag, struct answer *ret);
/* The same for what must not be asked twice: nothing is sent again. */
int request_call_once(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag,
                      struct answer *ret);
/* One that `done` answers; *ret_count, if wanted, is how many things it touched. */
int request_done(struct sluice_client *client, enum message_id id, const void *in, uint64_t tag, uint64_t *ret_count);
/* -EPROTO: the broker answered with something else than what the request asks for. */
int client_unexpected(struct sluice_client *client, const struct answer *answer);

#endif
