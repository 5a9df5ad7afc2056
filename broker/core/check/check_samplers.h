/*
 * core/check/check_samplers.h - what must hold of samplers; part of core_check.
 */
#ifndef SLUICE_BROKER_CORE_CHECK_CHECK_SAMPLERS_H
#define SLUICE_BROKER_CORE_CHECK_CHECK_SAMPLERS_H

struct core;

/* NULL, or what is broken. */
const char *check_samplers(const struct core *core);

#endif
