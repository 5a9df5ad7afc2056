/*
 * core/needs/needs.h - what stages of live groups need of handlers, and which workers meet it.
 */
#ifndef SLUICE_BROKER_CORE_NEEDS_NEEDS_H
#define SLUICE_BROKER_CORE_NEEDS_NEEDS_H

#include "broker/core/state/need.h"

/* Whether a group with the needs of this task may come in: those it has are known, or there is room for them. */
bool needs_have_room(const struct core *core, const struct core_task *task);
/* A group begins, or ends, to need that. */
void needs_join(struct core *core, struct group_work *work, const struct core_task *task);
void needs_part(struct core *core, struct group_work *work);
void needs_finish(struct core *core);

struct slice need_names(const struct need *need);
/* Workers that offer all of it, in whatever state. */
uint64_t need_workers(const struct core *core, const struct need *need);
/* Whether this one does; NULL, which is needed where nothing is, does with every one. */
bool need_is_met(const struct need *need, const struct worker *worker);
/* Slots of such workers that may be given jobs. */
uint64_t need_free_slots(const struct core *core, const struct need *need);
/* The freest of them, another than `avoided` if there is one; NULL: none has a slot free. */
struct worker *need_worker(const struct core *core, const struct need *need, struct slice avoided);

#endif
