/* code_task.h - the task of one /run_code: files, and the script that runs them; no agent, no engine, no evaluator. */
#ifndef SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_CODE_TASK_H
#define SLUICE_CLIENT_GATEWAY_SANDBOXFUSION_CODE_TASK_H

#include <jansson.h>

#include "common/base/buffer.h"

/* Of a body whose types are right. image: NULL for the worker's own. False: out of memory. */
bool code_task_write(const json_t *body, const char *image, struct buffer *ret);

#endif
