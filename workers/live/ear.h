/*
 * ear.h - a turn that is heard while it is sampled, for who watches the rollout: part of a fiber's stack, in the list
 * of its activity while the call lasts. What was said so far is kept, so that who comes late is told it, too.
 */
#ifndef SLUICE_WORKERS_LIVE_EAR_H
#define SLUICE_WORKERS_LIVE_EAR_H

#include "common/base/buffer.h"
#include "workers/engines/server/listener.h"

enum { LIVE_HEARD_MAX = 256 << 10 }; /* bytes of a turn; what follows is told with the turn */

struct activity;

struct live_ear { /* all zero at first */
    struct live_ear *next;
    struct activity *activity; /* NULL: nobody watched when it began */
    struct engine_listener listener;
    const struct engine_listener *other; /* who hears it, too; NULL: nobody does */
    uint32_t sampling;                   /* its number */
    struct buffer said;
    size_t told; /* of it, to who watches */
    bool is_told_of;
};

/* Who is to listen: `other` alone, which may be NULL, where nobody watches the current fiber's job. */
const struct engine_listener *live_ear_open(struct live_ear *ear, const struct engine_listener *other);
/* The call is over; whether what was heard stands. */
void live_ear_close(struct live_ear *ear, bool stands);

#endif
