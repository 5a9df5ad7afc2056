/*
 * sampled_check.h - whether what an engine sampled can be: its end is an end, its text what its ids say, its ids of its
 * vocabulary. What an answer tells by itself is reply_check.h's; for the rest the engine is asked. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_SAMPLED_CHECK_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_SAMPLED_CHECK_H

#include "workers/engines/server/engine_state.h"

/*
 * No id but the last is one that ends a turn. The last id does exactly when the engine says so, but for a turn whose
 * last token allowed was its end: some engines call that cut, and it becomes "stop". An end that is new must be a
 * special token, and is learnt. -EPROTO with a sentence.
 */
int sampled_check_end(struct engine *engine, struct generation *generation, struct fail *fail);

/*
 * And its text, for the dialects whose answers do not tell the bytes of each token: it is set, without the end token;
 * where there is one, of the answer, it must be what the ids say: by a tokenizer of the worker's that agrees with the
 * engine's, else by its /detokenize. Where that drops blanks (info.drops_blanks), the answer's count. Negative
 * (-EPROTO): the turn is emptied, unless it is only that the engine could not be asked what it says.
 */
int sampled_check_turn(struct engine *engine, struct generation *generation, struct fail *fail);

/*
 * Of an answer to this prompt. Some engines say how large their vocabulary is (info.vocabulary); to the others an id
 * above all that they were seen to take in a prompt is shown, which refuse what is beyond. -EPROTO with a sentence;
 * other errors are those of asking.
 */
int sampled_check_ids(struct engine *engine, const struct tokens *prompt, const struct tokens *sampled,
                      struct fail *fail);
/* The same of the likeliest ids that it told of the given ones from `from` on. */
int sampled_check_tops(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *scores,
                       struct fail *fail);

#endif
