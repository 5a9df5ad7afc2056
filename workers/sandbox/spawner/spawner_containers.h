/* spawner_containers.h - new containers, as the worker asks for them. */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_CONTAINERS_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_SPAWNER_CONTAINERS_H

#include "workers/sandbox/spawner/spawner_inside.h"

/* What was asked for. The worker is answered; 0, or negative errno where the answer cannot be sent. */
int spawner_open_container(struct spawner_state *state);
/* By the fork server under the sandbox. */
int spawner_fork_kernel(struct spawner_state *state);

#endif
