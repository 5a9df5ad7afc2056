/*
 * task.h - a task of ours of an instance and the sampling_params of ProRL's /process: what is asked, how it is judged
 * by its data_source, how it is sampled and for how long. What has no meaning here is ignored, as ProRL does.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_TASK_H
#define SLUICE_CLIENT_GATEWAY_PRORL_TASK_H

#include "client/gateway/prorl/instance.h"
#include "client/gateway/prorl/sources.h"

struct task_plan {
    const json_t *instance, *params;
    const char *source; /* the instance's data_source, or the default */
    int64_t timeout_ms; /* where the params say none */
    const char *images; /* where prepared images are, with {sif} or {image} in it; NULL: where instances say */
};

const char *task_source(const json_t *instance);
/* The caller's; NULL: why, a sentence. */
json_t *task_make(const struct task_plan *plan, char why[WHY_SIZE]);

#endif
