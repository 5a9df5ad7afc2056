/* sglang_reply.h - what SGLang answers to /generate with return_logprob, read and checked. Pure. */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_SGLANG_SGLANG_REPLY_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_SGLANG_SGLANG_REPLY_H

#include "workers/engines/dialects/fold.h"
#include "workers/engines/dialects/reply_check.h"

/*
 * Everything of *ret, which is empty before, but `seconds`. Ids and log-probabilities both come
 * from output_token_logprobs, [log-probability, id, text or null] a token. `streamed`: those of an answer that was a
 * stream, which are taken; NULL: they stand in the document.
 */
int sglang_reply_read(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                      uint64_t max_tokens, struct generation *ret, struct fail *fail);
/* The log-probability of the likeliest token at the first place. */
bool sglang_reply_top(const struct json_doc *doc, double *ret);
/* What input_token_logprobs and, of the likeliest, input_top_logprobs tell of ids[from..], from > 0. */
int sglang_reply_scores(const struct json_doc *doc, const struct tokens *ids, size_t from,
                        const struct token_scores *ret, struct fail *fail);

/* What an answer is as a stream whose events have their own tokens alone. */
extern const struct fold_form sglang_stream_form;

#endif
