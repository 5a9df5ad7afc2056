/*
 * core/sampler/sampling.h - what samplers do at the end of a step: judge, make batches, release, let trajectories go.
 */
#ifndef SLUICE_BROKER_CORE_SAMPLER_SAMPLING_H
#define SLUICE_BROKER_CORE_SAMPLER_SAMPLING_H

#include "broker/core/state/sampler.h"

#include <jansson.h>

/* Of all samplers that something was noted of. */
void samplers_settle(struct core *core);
/* Who waits is told that its batch is not there, and waits no longer. */
void sampler_end_wait(struct core *core, struct sampler *sampler);
/* Another request of its trainer's name waits from now on: who waited is refused, and waits no longer. */
void sampler_refuse_wait(struct core *core, struct sampler *sampler);
/* Requests that have waited long enough; groups of samplers that are being closed. */
void samplers_tick(struct core *core);
/* When that is due at the latest. */
int64_t samplers_due(const struct core *core);

/* ---- release.c ------------------------------------------------------------------------------ */

/* How many groups are to be at work: what is missing, over-sampled, within the window. */
uint64_t sampler_wanted(const struct sampler *sampler);
/* Queues held groups, the oldest first, until so many are live. */
void sampler_release(struct core *core, struct sampler *sampler);
/* What is left of a group whose rewards seem uniform goes last, and no longer when it is not. */
void sampled_rank(struct core *core, struct sampled *sampled);

/* ---- batch.c ---------------------------------------------------------------------------------- */

/* Makes the next batch of those that are ready longest, if it is asked for and full. True if it did. */
bool sampler_make_batch(struct core *core, struct sampler *sampler);
void sampler_send_batch(struct core *core, struct sampler *sampler, struct slice client, uint64_t tag);

enum { SAMPLER_DIGITS = 12 }; /* of the numbers that are no integers */
/* ---- account.c: JSON ---------------------------------------------------------------------------- */

/* An object that the caller owns; counts since the batch before, or ever. */
json_t *sampler_account(const uint64_t counts[SAMPLER_COUNTS]);
/* All of sampler.state's. */
json_t *sampler_describe(const struct core *core, const struct sampler *sampler);

/* ---- why.c ---------------------------------------------------------------------------------------- */

enum { SAMPLER_WHY_MAX = MESSAGE_MAX(sampler_waits, why) };
/* Why the next batch is not there, as a sentence. */
void sampler_why(const struct core *core, const struct sampler *sampler, char ret[SAMPLER_WHY_MAX + 1]);

#endif
