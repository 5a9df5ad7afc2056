/*
 * id_check.h - whether what an engine sampled are ids of its vocabulary. Some say how large it is
 * (info.vocabulary); of the others an id above all that they were seen to take in a prompt is
 * shown to them, which refuse what is beyond. Awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_ID_CHECK_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_ID_CHECK_H

#include "workers/engines/server/engine_state.h"

/* Of an answer to this prompt. -EPROTO with a sentence; other errors are those of asking. */
int id_check(struct engine *engine, const struct tokens *prompt, const struct tokens *sampled,
              struct fail *fail);

#endif
