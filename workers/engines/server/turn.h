/* turn.h - who speaks to a model, and what it said: a turn as a dialect has it. */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_TURN_H
#define SLUICE_WORKERS_ENGINES_SERVER_TURN_H

#include "schemas/task/task.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/tokenizer/tokens.h"

enum tell_role { TELL_USER, TELL_TOOL, TELL_ROLES };
const char *tell_role_word(enum tell_role role); /* as messages have it: "user", "tool" */

struct generation {
    struct tokens sampled;
    float *logprobs; /* sampled.count of them, natural log, of the engine's distribution */
    char *text;      /* what the ids say, without the end token; UTF-8, repaired */
    char finish[16]; /* "stop" (last id ends the turn) or "length" */
    uint32_t prompt_tokens, cached_tokens;
    char version[64];          /* of the weights, as the engine calls them; "": it does not say */
    struct record_span *spans; /* where the engine says which of several sampled which; else none */
    size_t span_count;
    uint64_t policy_number; /* of the version that was served when it began (calls.h) */
    double seconds;
    struct record_seconds queue_seconds, prefill_seconds, decode_seconds; /* of it, as it says */
};
void generation_finish(struct generation *generation);

/* What given tokens are worth, a row for each: borrowed, and written to. */
struct token_scores {
    const uint8_t *wanted; /* of which tokens; the rows of others are left as they are. NULL: of all */
    float *logprobs;       /* natural log */
    uint32_t top_k;        /* of the likeliest ids in each place; 0: these are not asked for */
    uint32_t *top_ids;
    float *top_logprobs; /* top_k a row, the likeliest first */
};
/* The same from that row on. */
struct token_scores token_scores_from(const struct token_scores *scores, size_t row);
/* Whether ids[i] is wanted, where the first row is that of ids[from]. */
bool token_scores_want(const struct token_scores *scores, size_t from, size_t i);

#endif
