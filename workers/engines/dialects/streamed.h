/*
 * streamed.h - a call that samples, answered whole or as a stream. A stream's tokens are read while the engine samples,
 * and its text is told as it comes, if anybody hears it: of the ids by a tokenizer of the worker's, if one agrees, else
 * as the server tells it. What ends the turn is not told, nor what comes with it. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_STREAMED_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_STREAMED_H

#include "workers/engines/dialects/fold.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/teller.h"

struct streamed_answer { /* streamed_answer_finish it */
    struct call_answer whole;
    struct sampled_tokens tokens; /* of a stream; else they stand in the document */
    bool is_stream;
};
void streamed_answer_finish(struct streamed_answer *answer);
#define AUTO_STREAMED_ANSWER __attribute__((cleanup(streamed_answer_finish))) struct streamed_answer
/* What the readers of an answer are given: NULL where all stands in the document. */
struct sampled_tokens *streamed_answer_tokens(struct streamed_answer *answer);

/*
 * The answer as if it had not been streamed, but for its tokens. Negative: it broke off, and *ret is what came before,
 * if any token did: else its text is empty. With nobody who hears it, what comes of it is noted: engine_info's `along`.
 */
int streamed_sample(struct engine *engine, const struct http_api_call *call, const struct fold_form *form,
                    struct teller *teller, struct streamed_answer *ret, struct fail *fail);

#endif
