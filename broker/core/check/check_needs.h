/*
 * core/check/check_needs.h - the invariants of what stages need of handlers and what workers offer.
 */
#ifndef SLUICE_BROKER_CORE_CHECK_CHECK_NEEDS_H
#define SLUICE_BROKER_CORE_CHECK_CHECK_NEEDS_H

struct core;

/* NULL, or what is broken. */
const char *check_needs(const struct core *core);

#endif
