/*
 * stage_environment.h - who runs what a stage runs, where, and with which variables (environment.h): what the task
 * says, by whose turn it is. Once the image was found.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_STAGE_ENVIRONMENT_H
#define SLUICE_WORKERS_STAGES_SANDBOX_STAGE_ENVIRONMENT_H

#include "workers/stages/sandbox/environment.h"
#include "workers/stages/sandbox/stage_sandbox.h"

/* Where the agent's commands start on its image, as those inside name it; where those of its own part do. */
const char *stage_agents_workdir(const struct stage_sandbox *stage, const struct job *job);
const char *stage_sandbox_workdir(const struct stage_sandbox *stage, const struct job *job);
/* The directories that it stands on, the uppermost first: how many. */
size_t stage_sandbox_roots(const struct stage_sandbox *stage, const char *roots[STAGE_LAYERS_MAX + 1]);
/* As environment_make, by its part; `user` (may be NULL) in place of who that has. */
int stage_sandbox_environment(const struct stage_sandbox *stage, const struct job *job, const char *user,
                              struct environment *ret, struct fail *fail);
/* The HOME of `user` there, the caller's; NULL: it has none. -EINVAL: there is no such user. */
int stage_sandbox_home(const struct stage_sandbox *stage, const struct job *job, const char *user, char **ret,
                       struct fail *fail);

#endif
