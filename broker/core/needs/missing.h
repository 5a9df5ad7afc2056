/*
 * core/needs/missing.h - in words: what no worker offers that a stage needs, and what to do about it.
 */
#ifndef SLUICE_BROKER_CORE_NEEDS_MISSING_H
#define SLUICE_BROKER_CORE_NEEDS_MISSING_H

#include "broker/core/state/need.h"

struct missing {
    char text[512];
};

/*
 * "the evaluator grade, which no eval worker offers: start one with --handler; did you mean 'graded'?"; empty if some
 * worker, in whatever state, offers all of it.
 */
struct slice missing_of(const struct core *core, const struct need *need, struct missing *ret);
/* Of the first stage of a live group's that lacks something; last, the engines of its judges' policy. */
struct slice missing_of_group(const struct core *core, const struct group_work *work, struct missing *ret);
/* "the evaluator grade", "the agent mine and the tools look.up and sum" */
void need_print(const struct need *need, char *ret, size_t size);

#endif
