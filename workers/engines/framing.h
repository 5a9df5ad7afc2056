/*
 * framing.h - learning an engine's frame (bridge.h) from its template and tokenizer, and proving
 * it there: bridges of nasty contents must be what the engine itself makes of the same turns.
 */
#ifndef SLUICE_WORKERS_FRAMING_H
#define SLUICE_WORKERS_FRAMING_H

#include "workers/engines/dialect.h"

/*
 * *ret is empty before; frame_finish it also after an error. -ENOTSUP: this template cannot be
 * bridged exactly, and the sentence says why.
 */
int framing_learn(struct engine *engine, struct frame *ret, struct fail *fail);

/* One bridge with a given frame; the engine's tokenizer is asked once. */
int framing_bridge(struct engine *engine, const struct frame *frame, uint32_t last,
                   struct slice content, struct tokens *ret, struct fail *fail);

#endif
