/*
 * reply_check.h - what all readers of an engine's answer check alike: ids are ids and not too many,
 * a log-probability is finite and not above 0, a reason for the end is one that is known. Pure.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_REPLY_CHECK_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_REPLY_CHECK_H

#include "workers/engines/server/turn.h"
#include "common/json/json_doc.h"

/* Whether so many may have been sampled: at most max_tokens. */
int reply_count(uint64_t count, uint64_t max_tokens, struct fail *fail);
/* Of token `i`. */
int reply_id(const struct json_doc_node *node, size_t i, uint32_t *ret, struct fail *fail);
/* Those of a list, which may be NULL, behind the ones that *ret has: at most max_tokens of them all. */
int reply_more_ids(const struct json_doc *doc, const struct json_doc_node *ids, uint64_t max_tokens, struct tokens *ret,
                   struct fail *fail);
/* At least one, at most max_tokens. */
int reply_ids(const struct json_doc *doc, const struct json_doc_node *ids, uint64_t max_tokens, struct tokens *ret,
              struct fail *fail);
/* Of token `i`. Servers clamp what they do not know to -9999: no log-probability. */
int reply_logprob(const struct json_doc_node *node, size_t i, float *ret, struct fail *fail);
/* Whether a list of scores has one for each token of a prompt. */
int reply_scored(const struct json_doc_node *list, const struct tokens *prompt, struct fail *fail);

/* The likeliest of what is told of one place, the likeliest first. */
struct reply_tops {
    uint32_t *ids;
    float *logprobs;
    uint32_t wanted, count;
    uint64_t ranks; /* those that were told, a bit each: of servers that tell them */
};
/* Of row `row`. */
struct reply_tops reply_tops_of(const struct token_scores *scores, size_t row);
/* One that is told, of token `i`: it takes its place if it is among the likeliest. */
int reply_tops_add(struct reply_tops *tops, const struct json_doc_node *logprob, uint32_t id, size_t i,
                   struct fail *fail);
/* One whose rank, from 1, is told. */
int reply_tops_put(struct reply_tops *tops, uint32_t rank, const struct json_doc_node *logprob, uint32_t id, size_t i,
                   struct fail *fail);
/* Whether as many as are wanted were told, each once and the likeliest first. */
int reply_tops_check(const struct reply_tops *tops, size_t i, struct fail *fail);

/* Room for one a token. */
int reply_room(struct generation *ret, struct fail *fail);
/* "stop", "length"; -EAGAIN when the engine aborted the call, -EIO when it failed at it. */
int reply_finish(const struct json_doc *doc, const struct json_doc_node *reason, struct generation *ret,
                 struct fail *fail);
/* The engine's count of the prompt; equal to what was sent. NULL: it does not say. */
int reply_prompt(const struct json_doc_node *count, size_t prompt_count, struct generation *ret, struct fail *fail);
int reply_text(const struct json_doc *doc, const struct json_doc_node *text, struct generation *ret, struct fail *fail);

/*
 * Whether an answer's text is what its ids say; both repaired. What is no UTF-8 every server repairs
 * in its own way, with one U+FFFD or several, and some leave out a character that is cut at the end.
 */
enum reply_blanks { BLANKS_COUNT, BLANKS_IGNORED };
bool reply_says(struct slice text, struct slice ids_say, enum reply_blanks blanks);
/* -EPROTO: it is not. */
int reply_other_text(struct fail *fail);
/*
 * [{"version", "start", "end"}, ...] or one string: the versions of the weights that sampled it, in
 * order, joined by '+'. "default" is what servers say while nobody has named one: "". Where several spans cover
 * what was sampled, which is read already, ret->spans are they.
 */
void reply_versions(const struct json_doc *doc, const struct json_doc_node *versions, struct generation *ret);
/*
 * Whether the likeliest token's log-probability moves with the temperature, 1 and 2: "processed" if
 * so, "raw" if not; "unknown" when it is too likely to tell, or NaN.
 */
const char *logprobs_mode_of(double at_1, double at_2);

#endif
