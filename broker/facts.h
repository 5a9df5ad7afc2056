/*
 * facts.h - what scheduling needs to know of a submitted task, read from its JSON,
 * and the number that tells one content of a group from another. The shell asks for
 * both at a submit; the ledger keeps them beside the task (ledger.def), and reads them
 * from it again where it does not.
 */
#ifndef SLUICE_BROKER_FACTS_H
#define SLUICE_BROKER_FACTS_H

#include "broker/core/core.h"

/* `task.id`, `task.image` and `task.policy` point into it: a facts struct stays where it was filled in. */
struct facts {
    struct core_task task;
    char id[129], image[4097], policy[65];
};

/* False with a refusal that names the field ("task.limits.run_s"), *ret all zero. */
bool facts_read(struct slice json, struct facts *ret, struct refusal *no);

/* Of a task that an older broker took and this one cannot read: workers will refuse it by name. */
void facts_default(struct facts *ret);

/* Stable: it is stored. */
uint64_t facts_hash(struct slice stream, uint64_t samples, struct slice task);

#endif
