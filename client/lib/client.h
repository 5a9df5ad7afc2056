/*
 * client.h - what the files of libsluice share: the client itself and its sentence. Whatever else they do includes
 * this. Public is only sluice.h.
 */
#ifndef SLUICE_CLIENT_LIB_CLIENT_H
#define SLUICE_CLIENT_LIB_CLIENT_H

#include <zmq.h>

#include "client/lib/link.h"
#include "client/sluice.h"
#include "client/lib/stream/trajectory_view.h"
#include "schemas/messages/message.h"
#include "schemas/messages/message_max.h"

struct answer;
struct sluice_client;
struct stream;
struct watching;

/* True if the answer was somebody's; it may have been taken over. */
typedef bool answer_offer(struct sluice_client *client, struct answer *answer);

struct sluice_client {
    char front_url[512], feed_url[512];
    int64_t timeout_ms, patience_ms; /* patience_ms -1: for ever */
    void *context, *front;           /* NULL until the first request */
    struct link link;
    uint64_t last_tag;
    char expected_template[80], expected_tokenizer[80];     /* of traces; "": any */
    uint64_t lease_ms;                                      /* the shortest that was submitted with; 0: none */
    char error[2304];                                       /* the sentence; "" when the last call failed at nothing */
    bool is_silent;                                         /* the last failure is that no broker answered */
    char warning[MESSAGE_MAX(group_accepted, warning) + 1]; /* of the last submit or subscribe, "" for none */
    struct stream *stream;                                  /* NULL until sluice_subscribe */
    struct watching *watching;                              /* NULL until sluice_watch */
    /* They take what no request waits for; NULL until sluice_subscribe, sluice_watch. */
    answer_offer *offer_stream, *offer_watching;
    struct trajectory_view got; /* of sluice_get */
    struct buffer text;         /* what sluice_status and sluice_get return */
};

/* To whoever takes what no request waits for. */
bool client_offer(struct sluice_client *client, struct answer *answer);
/* Sets the sentence and returns code; for `return client_fail(...)`. */
int client_fail(struct sluice_client *client, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The broker's refusal as negative errno, its words as the sentence. */
int client_refused(struct sluice_client *client, const struct msg_refused *refused);
/* A copy that is good until the next call; NULL when out of memory. */
const char *client_keep(struct sluice_client *client, struct slice text);
int refused_errno(const struct msg_refused *refused);

#endif
