/* tokenizer_digest.h - what an engine's tokenizer is known by (schemas/tokenizer_sample.h). */
#ifndef SLUICE_WORKERS_TOKENIZER_DIGEST_H
#define SLUICE_WORKERS_TOKENIZER_DIGEST_H

#include "workers/engines/dialect.h"

/*
 * One question to the engine; awaits. *ret is "" where the dialect cannot ask it, or the engine does
 * not take the text: not knowing is no fault.
 */
int tokenizer_digest_learn(struct engine *engine, const struct dialect *dialect, char ret[80],
                           struct fail *fail);

#endif
