/*
 * vllm_reply.h - what vLLM answers to /inference/v1/generate and to /v1/completions with
 * return_token_ids, read and checked. Pure.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_VLLM_VLLM_REPLY_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_VLLM_VLLM_REPLY_H

#include "workers/engines/dialects/fold.h"
#include "workers/engines/dialects/reply_check.h"

/*
 * Everything of *ret, which is empty before, but `seconds` and `text`: this route tells ids alone. `streamed`: the
 * tokens of an answer that was a stream, which are taken; NULL: they stand in the document.
 * Log-probabilities stand in logprobs.content, one entry a token, with its id ("token_id", or
 * "token": "token_id:N" in older releases).
 */
int vllm_reply_generate(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                        uint64_t max_tokens, struct generation *ret, struct fail *fail);
/*
 * Everything but `seconds`. The prompt's ids come back and must be those that were sent;
 * logprobs.tokens name their tokens "token_id:N" where the server can.
 */
int vllm_reply_complete(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                        uint64_t max_tokens, struct generation *ret, struct fail *fail);

/* The log-probability of the likeliest token at the first place, of a reply to either route. */
bool vllm_reply_top(const struct json_doc *doc, double *ret);

/* "raw" or "processed", where a reply to either route says it itself: logprobs.mode. NULL: it does not. */
const char *vllm_reply_mode(const struct json_doc *doc);

/*
 * What prompt_logprobs tell of ids[from..], from > 0; on either route. In each place stand the likeliest, of ranks 1 to
 * top_k, and the given token, whose rank is above where it is none of them (append_logprobs_for_next_position).
 */
int vllm_reply_scores(const struct json_doc *doc, const struct tokens *ids, size_t from, const struct token_scores *ret,
                      struct fail *fail);

/* What an answer of either route is as a stream. */
extern const struct fold_form vllm_stream_generate, vllm_stream_complete;

#endif
