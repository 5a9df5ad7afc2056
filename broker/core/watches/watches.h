/*
 * core/watches/watches.h - who watches which rollouts (rollout.watch): for WATCH_MS since it was last asked for, in
 * memory alone, and of bounded numbers. Who has stopped looking is told nothing any more, by that time alone; so a
 * watch needs no end, and nothing is decided by it.
 *
 * The worker that has the rollout's job is told that somebody watches (lane.watch), and says from then on what the job
 * does (rollout.live). A group's init is every watched rollout's of the group.
 */
#ifndef SLUICE_BROKER_CORE_WATCHES_WATCHES_H
#define SLUICE_BROKER_CORE_WATCHES_WATCHES_H

#include "broker/core/state/job.h"

struct call;
struct core;
struct msg_rollout_live;

enum {
    WATCH_MS = 15000,
    WATCH_TELL_MS = 10000,      /* a worker that knows of so much is told no more */
    WATCHES_MAX = 256,          /* rollouts */
    WATCHERS_MAX = 64,          /* of one */
    WATCH_CYCLE_BYTES = 4 << 20 /* of events, for all together in a cycle; beyond, they are dropped */
};

/* Who sent the call watches the rollout, once more. NULL, or as a sentence why not: as many do as may. */
const char *watch_renew(struct core *core, const struct call *call, struct slice rollout);
/* Tells the worker of a leased job of its rollouts' watchers, if there are some and it does not know. */
void watch_tell(struct core *core, struct job *job, bool anew);
/* What a leased job's worker said goes to who watches its rollouts. */
void watch_publish(struct core *core, const struct job *job, const struct msg_rollout_live *in);
void watches_finish(struct core *core);

#endif
