/* task_code.h - how a task of ProRL's is judged by programs and their tests. */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_TASK_CODE_H
#define SLUICE_CLIENT_GATEWAY_PRORL_TASK_CODE_H

#include "client/gateway/prorl/task.h"

/* Into the task, which has an agent and limits. False: why. */
bool task_code_judge(const json_t *truth, json_t *task, char why[WHY_SIZE]);

#endif
