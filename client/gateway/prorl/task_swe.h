/* task_swe.h - how a task of ProRL's is judged by a repository: its image, set-up and tests. */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_TASK_SWE_H
#define SLUICE_CLIENT_GATEWAY_PRORL_TASK_SWE_H

#include "client/gateway/prorl/task.h"

/* Into the task, which has an agent and limits. False: why. */
bool task_swe_judge(const struct task_plan *plan, json_t *task, char why[WHY_SIZE]);

#endif
