/*
 * core/needs/offers.h - what the handlers of workers offer: worker.beat's `offers`, read and kept.
 */
#ifndef SLUICE_BROKER_CORE_NEEDS_OFFERS_H
#define SLUICE_BROKER_CORE_NEEDS_OFFERS_H

#include "broker/core/state/worker.h"

struct core;
struct offers;

/* The next word of a set, "ROLE:NAME"; false behind the last. */
bool names_next(struct slice names, size_t *at, struct slice *ret);
/* Whether each name of `some` is among those of `all`. */
bool names_are_among(struct slice some, struct slice all);
struct slice offers_names(const struct offers *offers);

/* What the worker says it offers. What is no offer is left out, and worker->offers_error says why. */
void offers_say(struct core *core, struct worker *worker, struct slice text);
/* Its slots or state have changed: puts it among those that may be given jobs, or takes it out. */
void offers_refresh(struct core *core, struct worker *worker, bool may_take);
/* The worker goes. */
void offers_leave(struct core *core, struct worker *worker);

#endif
