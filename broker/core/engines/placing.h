/*
 * core/engines/placing.h - which engine a rollout gets.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_PLACING_H
#define SLUICE_BROKER_CORE_ENGINES_PLACING_H

#include "broker/core/engines/engines.h"

/* Whether an engine of this policy that lets is below its limit; NULL: of any. */
bool placing_has_room(const struct core *core, const struct policy *policy);
/*
 * The engine for a rollout's run or evaluation, by core->placing, among those that have room; another than
 * the one it avoids if there is one. NULL: placing_has_room is false.
 */
struct engine *placing_choose(struct core *core, const struct job *job);
/* Tokens of a rollout, as far as is known; 1 where nothing is. */
uint64_t placing_typical(const struct core *core);
/* Tokens of its rollouts' contexts; those that no worker has told of yet are typical. */
uint64_t placing_load(const struct engine *engine, uint64_t typical);

#endif
