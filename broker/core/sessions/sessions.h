/*
 * core/sessions/sessions.h - where the loops of others speak to leased jobs (agent.kind session), as their workers say
 * (session.open): kept by dispatch, in memory alone, and gone with its lease. Whoever knows such a URL can sample as
 * that rollout, so it is told to its owner, and shown nowhere.
 *
 * And who waits to be told. A wait is answered when its rollout's session is open, when the rollout has ended, or when
 * its time is over: each makes it due, and clients/session.c answers what is due.
 */
#ifndef SLUICE_BROKER_CORE_SESSIONS_SESSIONS_H
#define SLUICE_BROKER_CORE_SESSIONS_SESSIONS_H

#include "broker/core/state/job.h"

struct call;
struct core;

enum { SESSION_WAITS_MAX = 4096 };

struct session_wait {
    struct heap_node due; /* in core->session_waits */
    uint64_t tag, after;
    struct slice client, owner, rollout; /* the client's route, and its name */
    uint8_t text[];
};

/* Of a leased job; empty: it is not open, or the job is not leased. */
struct slice session_url(const struct core *core, const struct job *job);
void session_set(struct core *core, const struct job *job, struct slice url);
void session_forget(struct core *core, const struct job *job);
void sessions_finish(struct core *core);

/* How many of a client of this name may wait (quotas.h). */
size_t session_waits_max(const struct core *core, struct slice name);
/* False: as many wait as may, of all or of the caller's name. One that waits already, by client and tag, goes on. */
bool session_wait_add(struct core *core, const struct call *call, struct slice rollout, uint64_t after,
                      uint64_t wait_ms);
/* Something is to be told of the job's rollout. */
void session_waits_wake(struct core *core, const struct job *job);
/* One that is due, which the caller frees; NULL: none is. */
struct session_wait *session_wait_take(struct core *core);

#endif
