/* tokenizer_digest.h - what an engine's tokenizer is known by (schemas/tokenizer_sample.h). */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_TOKENIZER_DIGEST_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_TOKENIZER_DIGEST_H

#include "workers/engines/server/engine_state.h"

/*
 * Of what came of asking for the sample's ids: 0 and the ids, or an error. `ret` is "" where it cannot be asked, or the
 * engine does not take the text: not knowing is no fault. Other errors are returned.
 */
int tokenizer_digest_take(int error, const struct tokens *ids, char ret[80], struct fail *fail);

#endif
