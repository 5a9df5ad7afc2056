/*
 * teller.h - what of a turn is told while it is sampled, in one call or in several (resumed.h): whole characters that
 * the turn's text begins with, whatever follows. Bytes that no character begins with end it, for those are repaired
 * with the whole text in sight. Pure.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_TELLER_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_TELLER_H

#include "common/base/buffer.h"
#include "workers/engines/server/listener.h"

struct teller {                             /* teller_finish it */
    const struct engine_listener *listener; /* NULL: nobody is told */
    struct buffer told;                     /* all that was */
    struct buffer pending;                  /* the beginning of a character */
    bool is_held;                           /* no more is told before the turn has ended */
    unsigned calls;                         /* that told of it */
};

/* What comes next; told with the next teller_tell. */
void teller_take(struct teller *teller, struct slice bytes);
void teller_tell(struct teller *teller);
void teller_finish(struct teller *teller);

#endif
