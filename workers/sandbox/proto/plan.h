/* plan.h - what a WIRE_CONTAINER asks for, as the spawner and the container's first process both read it. */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_PLAN_H
#define SLUICE_WORKERS_SANDBOX_PROTO_PLAN_H

#include "workers/sandbox/container/container.h"
#include "workers/sandbox/spawner/spawner.h"

/* All but the disk; the strings are the message's. False when it is not one. */
bool plan_read(struct container_plan *ret, const struct wire_message *message, const struct spawner_setup *setup);

#endif
