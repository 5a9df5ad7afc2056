/*
 * core/status/rollout_why.h - why a rollout does not get on, in words for people: what its job waits for and, where it
 * failed before, how. One sentence or two, each part with the engine, image or time that it is about.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_ROLLOUT_WHY_H
#define SLUICE_BROKER_CORE_STATUS_ROLLOUT_WHY_H

#include "broker/core/state/job.h"
#include "common/base/slice.h"
#include "schemas/messages/message_max.h"

struct core;

enum { WHY_MAX = MESSAGE_MAX(rollout_state, why) };

struct why {
    char text[WHY_MAX + 1];
};

/* In `why`; empty where nothing is in its way. */
struct slice rollout_why(const struct core *core, const struct job *job, struct why *why);

#endif
