/* Whether what a stage came to can be believed: its sandbox, and all that stood under it, must be whole at the end. */
#include "workers/stages/sandbox/stage_confirm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/requests.h"
#include "workers/jobs/cache_watch.h"
#include "workers/runtime/fiber.h"
#include "workers/stages/sandbox/stage_sandbox.h"
#include "workers/runtime/offload.h"

struct look {
    const struct job *job;
    const struct stage_sandbox *stage;
    struct fail *fail;
};

/* On a thread: an image may be far away. */
static int look_work(void *arg, const atomic_bool *stop)
{
    const struct look *look = arg;
    const struct stage_sandbox *stage = look->stage;
    (void)stop;
    int code = cache_watch_look(look->job->context->cache_watch, look->fail);
    for (size_t i = 0; i < stage->layer_count && code == 0; i++)
        code = layer_dir_look(&stage->layers[i], look->fail);
    return code < 0 ? code : image_hold_look(&stage->image, look->fail);
}

int stage_look(const struct job *job, const struct stage_sandbox *stage, struct fail *fail)
{
    struct look look = {job, stage, fail};
    return offload_run(look_work, &look, fail);
}

static int confirm(struct job *job, struct stage_sandbox *stage, struct fail *fail)
{
    fiber_lift_deadline(stage_closing_by(stage));
    int code = stage_look(job, stage, fail);
    if (code == 0 && stage->sandbox && !sandbox_breach(stage->sandbox))
        code = sandbox_confirm(stage->sandbox, fail);
    fiber_pop_deadline();
    if (code == -EIO && stage->sandbox && sandbox_breach(stage->sandbox))
        return 0; /* met meanwhile, and too late to matter */
    if (code == -ETIMEDOUT)
        fail_set(fail, code, "its image, its layers or its first process did not answer any more");
    return code;
}

void stage_confirm(struct job *job, struct stage_sandbox *stage)
{
    struct fail fail = {0};
    char came_to[512];
    const enum outcome outcome = job->result.outcome;
    if (!stage->image.path || outcome == OUTCOME_INFRA || outcome == OUTCOME_CANCELLED)
        return;
    int code = confirm(job, stage, &fail);
    if (code == 0 || code == -ECANCELED)
        return;
    snprintf(came_to, sizeof(came_to), "%.400s", job->result.detail[0] ? job->result.detail : outcome_wire(outcome));
    layer_finish(&job->result.layer);
    verdict_finish(&job->result.verdict);
    job_set_fault(job, OUTCOME_INFRA, code == -ENOMEDIUM ? FAULT_IMAGE : FAULT_NODE,
                  "the sandbox was not whole at the end, so that this does not count (%s): %s", came_to, fail.text);
}
