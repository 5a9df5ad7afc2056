/*
 * staleness.h - how far the policy has gone on since a rollout's first turn, and what its task says to that
 * (limits.versions_behind, limits.on_stale). What counts is the number of the version that is served when a
 * turn begins, against that of the first turn. Number 0 is no version's: nobody had said one.
 */
#ifndef SLUICE_WORKERS_AGENTS_STALENESS_H
#define SLUICE_WORKERS_AGENTS_STALENESS_H

#include "common/base/fail.h"
#include "schemas/messages/message.h"
#include "schemas/task/task.h"

struct staleness {
    uint64_t first;  /* the number at the first turn under one; 0: there was none yet */
    uint64_t most;   /* behind, of any turn */
    uint64_t oldest; /* the lowest number of a turn; 0: none had one */
};

/* Whether a turn under this number is within what the task lets it be. */
bool staleness_lets(const struct staleness *age, const struct task *task, uint64_t number);
/* Whether a turn that begins under this number may be: -EKEYEXPIRED with a sentence if it may not. */
int staleness_check(const struct staleness *age, const struct task *task, uint64_t number, struct fail *fail);
/* The rollout's outcome where one may not: ended, or to begin again. */
enum outcome staleness_outcome(const struct task *task);
/* It did begin. */
void staleness_take(struct staleness *age, uint64_t number);
/* Whether a turn was further behind than the task lets it, and the rollout went on: it is to be marked. */
bool staleness_is_marked(const struct staleness *age, const struct task *task);

#endif
