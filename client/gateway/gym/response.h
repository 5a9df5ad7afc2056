/*
 * response.h - a rollout as a response of OpenAI's Responses API, as NeMo Gym wants it: a message for each sampled
 * turn, the calls that were read from it and what they gave. The token fields stand on exactly one item of each turn
 * that is learned from, its last: the prompt is all of the trace before it, so that each extends the one before.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_RESPONSE_H
#define SLUICE_CLIENT_GATEWAY_GYM_RESPONSE_H

#include <jansson.h>

#include "client/sluice.h"
#include "common/base/buffer.h"

/* What a response repeats of its request. */
struct response_asked {
    const json_t *tools; /* an array; NULL: none */
    const char *model;   /* NULL: the policy's version */
    bool with_tokens;
};

/* The object; A trajectory of NULL: without output. */
void response_append(const struct sluice_trajectory *trajectory, const struct response_asked *asked,
                     struct buffer *out);
/* The items of its output one by one, for streams. */
void response_each(const struct sluice_trajectory *trajectory, bool with_tokens,
                   void (*each)(void *arg, size_t index, struct slice item), void *arg);
/* The token fields of a turn, as members with a comma before each. */
void response_append_tokens(const struct sluice_trace *trace, const struct sluice_turn *turn, struct buffer *out);
/* Whether it has an item with token fields. */
bool response_has_tokens(const struct sluice_trajectory *trajectory);

#endif
