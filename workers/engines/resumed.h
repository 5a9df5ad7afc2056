/*
 * resumed.h - a turn that is sampled in more than one call. Its text is told while it is sampled, and what was told
 * stands: so a call that breaks off, or that a pause aborts, is not made again, but goes on behind what it sampled.
 * Which version sampled which part is known of each. Whether any of its text was shown makes no difference: else what
 * a turn begins with would decide whether it is sampled anew. Pure.
 */
#ifndef SLUICE_WORKERS_ENGINES_RESUMED_H
#define SLUICE_WORKERS_ENGINES_RESUMED_H

#include "workers/engines/server/turn.h"

struct resumed {          /* resumed_finish it */
    struct tokens prompt; /* behind which the next call samples: the turn's, and what was sampled; empty: the turn's */
    struct generation before; /* what was sampled in the calls so far */
};

/* Takes what a call sampled before it broke off. False: out of memory. */
bool resumed_add(struct resumed *resumed, const struct tokens *prompt, struct generation *part);
/*
 * Puts what was sampled before in front of the last part, if there was any: a turn without a text, since that of parts
 * may be cut within a character. False: out of memory.
 */
bool resumed_join(struct resumed *resumed, const struct tokens *prompt, struct generation *last);
void resumed_finish(struct resumed *resumed);

#endif
