/*
 * streamed.h - a call that samples, whose text is told as it comes: of the ids by a tokenizer of the worker's, if one
 * agrees, else as the server tells it. What ends the turn is not told, nor what comes with it. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_STREAMED_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_STREAMED_H

#include "workers/engines/dialects/fold.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/dialects/teller.h"

/*
 * The answer as a document, as if it had not been streamed. Negative: it broke off, and *ret is what came before, if
 * any token did: else its text is empty.
 */
int streamed_sample(struct engine *engine, const struct http_api_call *call, const struct fold_form *form,
                    struct teller *teller, struct call_answer *ret, struct fail *fail);

#endif
