/* launch.h - a process in the sandbox: an environment of our own, given descriptors, no rights. */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_LAUNCH_H
#define SLUICE_WORKERS_SANDBOX_INIT_LAUNCH_H

#include <sys/types.h>

#include "common/base/fail.h"
#include "workers/sandbox/init/backend.h"
#include "workers/sandbox/proto/wire.h"

enum { LAUNCH_ARGS_MAX = 256, LAUNCH_VARIABLES_MAX = SANDBOX_VARIABLES_MAX };

/* Of every process inside. */
extern const char *const launch_environment[];
/* Every signal to its default, none blocked. */
void launch_reset_signals(void);

/* By pid 1, for a WIRE_START: forks what shall become the program. Its pid and a descriptor
 * that can be read when it has become that, or cannot; or negative errno. */
pid_t launch(const struct container_plan *plan, const struct sandbox_backend *backend, struct container *container,
             const struct wire_message *message, int *ret_report, struct fail *fail);
/* Does not wait. 1: it has executed the program, or was killed; 0: neither yet; -ENOEXEC: the
 * program does not start; other negative errno: for want of something of ours. */
int launch_look(int report, struct fail *fail);

#endif
