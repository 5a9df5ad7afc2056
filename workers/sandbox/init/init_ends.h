/* init_ends.h - how processes of a sandbox end: they are told of, buried, killed. */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_INIT_ENDS_H
#define SLUICE_WORKERS_SANDBOX_INIT_INIT_ENDS_H

#include "workers/sandbox/init/init_inside.h"

/* Tells what became of those under way. */
void init_settle(struct init *init);
/* Buries the dead, ours and the orphans. */
void init_reap(struct init *init);
/* All but us and `spared` (0: none). False when new ones appear as fast as they are killed (the spared
 * one makes them). */
bool init_kill_others(struct init *init, pid_t spared);
bool init_kill_but(struct init *init, const struct proc_spared *spared);
/* Nobody is left when we are gone. */
_Noreturn void init_end(struct init *init);

#endif
