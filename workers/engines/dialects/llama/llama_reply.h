/*
 * llama_reply.h - what llama.cpp's server answers to /completion, read and checked. Pure but for
 * `score`, which is called for tokens that the server reports no probability for.
 *
 * The server writes an entry into completion_probabilities only when the text so far ends in
 * a whole character: of the three byte tokens of an emoji, only the last has one, with the bytes of
 * all three. The entries are therefore aligned by the same rule, and what is missing is asked for.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_LLAMA_LLAMA_REPLY_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_LLAMA_LLAMA_REPLY_H

#include "workers/engines/dialects/reply_check.h"

enum { TOKEN_BYTES_MAX = 512 };

struct llama_score {
    float logprob;
    uint8_t bytes[TOKEN_BYTES_MAX]; /* what the token says; none for an end-of-turn token */
    size_t byte_count;
};

struct llama_scorer {
    void *arg;
    /* The log-probability of ids[at] after the prompt and ids[0..at]. */
    int (*score)(void *arg, const struct tokens *ids, size_t at, struct llama_score *ret, struct fail *fail);
};

/* Everything but `seconds` of *ret, which is empty before. -EPROTO with a sentence. */
int llama_reply_read(const struct json_doc *reply, size_t prompt_count, uint64_t max_tokens,
                     const struct llama_scorer *scorer, struct generation *ret, struct fail *fail);

/*
 * One entry for `id` out of the reply to a question about one token: that of the sampled token
 * itself, or one of its top_logprobs. 0, or -ENOENT when it is not there.
 */
int llama_reply_find(const struct json_doc *reply, uint32_t id, struct llama_score *ret);
/* The likeliest in that place, of token `i`: as many as tops->wanted, or -EPROTO. */
int llama_reply_tops(const struct json_doc *reply, size_t i, struct reply_tops *tops, struct fail *fail);

#endif
