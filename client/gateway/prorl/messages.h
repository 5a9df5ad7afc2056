/*
 * messages.h - a trajectory's main trace as ProRL's messages: role, content, token_ids, input_ids, logprobs, and the
 * tool_calls of a reply.
 *
 * The token_ids of all messages, joined, are the trace up to its last reply, and those of the assistant's are what the
 * policy sampled: what stands between replies belongs to the first message behind the reply, and what stands before the
 * first one to the first message of all. The last message is an assistant's.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_MESSAGES_H
#define SLUICE_CLIENT_GATEWAY_PRORL_MESSAGES_H

#include "client/sluice.h"
#include "common/base/buffer.h"

/* A JSON array; [] where nothing was sampled. with_input_ids: each reply has its whole prompt; else null. */
void messages_write(const struct sluice_trajectory *trajectory, bool with_input_ids, struct buffer *ret);
/* All other traces: label, reason, token_ids, mask, logprobs. */
void messages_write_others(const struct sluice_trajectory *trajectory, struct buffer *ret);

#endif
