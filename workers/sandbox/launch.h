/* launch.h - a process in the sandbox: an environment of our own, given descriptors, no rights. */
#ifndef SLUICE_WORKERS_SANDBOX_LAUNCH_H
#define SLUICE_WORKERS_SANDBOX_LAUNCH_H

#include <sys/types.h>

#include "common/fail.h"
#include "workers/sandbox/room.h"
#include "workers/sandbox/wire.h"

enum { LAUNCH_ARGS_MAX = 256 };

/* Of every process inside. */
extern const char *const launch_environment[];
/* Every signal to its default, none blocked. */
void launch_reset_signals(void);

/* By pid 1, for a WIRE_START. The pid once it is executed, or negative errno. */
pid_t launch(const struct room_plan *plan, const struct room *room,
             const struct wire_message *message, struct fail *fail);

#endif
