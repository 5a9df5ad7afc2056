/*
 * sampled_tokens.h - the sampled tokens of an answer, an id and a log-probability each, checked as they are taken: all
 * of a document, or of a stream each event's own, while the engine samples the next ones. Pure.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_SAMPLED_TOKENS_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_SAMPLED_TOKENS_H

#include "common/json/json_doc.h"
#include "workers/engines/server/turn.h"

struct sampled_tokens { /* all zero at first, but for `most`; sampled_tokens_finish it */
    uint64_t most;      /* that were asked for */
    struct tokens ids;
    float *logprobs; /* of the first `valued` ids: what is told of a token comes with its id, or behind it */
    size_t valued, capacity;
};
void sampled_tokens_finish(struct sampled_tokens *sampled);

/* How a dialect takes those that a document tells of, or an event. -EPROTO with a sentence. */
typedef int sampled_tokens_take(const struct json_doc *doc, struct sampled_tokens *ret, struct fail *fail);

/* The ids of a list, which may be NULL. */
int sampled_tokens_ids(struct sampled_tokens *sampled, const struct json_doc *doc, const struct json_doc_node *list,
                       struct fail *fail);
/* Whether so many log-probabilities more have their ids. */
int sampled_tokens_count(const struct sampled_tokens *sampled, uint32_t logprobs, struct fail *fail);
/* The id of which a log-probability is due; there is one. */
uint32_t sampled_tokens_due(const struct sampled_tokens *sampled);
/* Its log-probability is told of another token. Returns -EPROTO. */
int sampled_tokens_other(const struct sampled_tokens *sampled, struct fail *fail);
int sampled_tokens_logprob(struct sampled_tokens *sampled, const struct json_doc_node *node, struct fail *fail);
/* Both of them. */
int sampled_tokens_pair(struct sampled_tokens *sampled, const struct json_doc_node *id,
                        const struct json_doc_node *logprob, struct fail *fail);

/*
 * ret->sampled and ret->logprobs: those of `streamed`, which is emptied, or, where that is NULL, of the document: at
 * least one, and as many of the one as of the other.
 */
int sampled_tokens_read(struct sampled_tokens *streamed, sampled_tokens_take *take, const struct json_doc *doc,
                        uint64_t most, struct generation *ret, struct fail *fail);

#endif
