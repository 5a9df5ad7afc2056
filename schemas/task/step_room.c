/* Where a step is evaluated, and how long all that may take which is not the agents' time. */
#include <string.h>

#include "schemas/task/steps.h"

/* What no evaluation in the agent's own sandbox can have. */
static void forget_room(struct task *task)
{
    task->artifacts = (struct task_artifact_list){0};
    task->eval_trust = "none";
    task->eval_grants = NULL;
    task->eval_grant_count = 0;
    task->eval_image = task->eval_workdir = task->eval_user = NULL;
    task->eval_build = (struct task_build){0};
}

void task_step_room(const struct task *task, size_t i, struct task *ret)
{
    const struct task_step *step = &task->steps[i];
    if (step->eval.sandbox)
        ret->eval_sandbox = step->eval.sandbox;
    if (task_is_evaluated_there(ret) && !task_is_evaluated_there(task))
        forget_room(ret);
    if (step->eval.artifacts.each)
        ret->artifacts = step->eval.artifacts;
    if (step->eval.image || step->eval.build.dockerfile) {
        ret->eval_image = step->eval.image;
        ret->eval_build = step->eval.build;
    }
    if (step->eval.workdir)
        ret->eval_workdir = step->eval.workdir;
    if (step->eval.user)
        ret->eval_user = step->eval.user;
    if (step->eval.grants.each) {
        ret->eval_grants = step->eval.grants.each;
        ret->eval_grant_count = step->eval.grants.count;
    }
}

bool task_step_is_apart(const struct task *task, size_t i)
{
    const char *said = task->steps[i].eval.sandbox;
    return strcmp(said ? said : task->eval_sandbox, "fresh") == 0;
}

static uint64_t step_s(const struct task *task, size_t i)
{
    const struct task_step *step = &task->steps[i];
    struct task room = *task;
    task_step_room(task, i, &room);
    return (task_step_is_apart(task, i) ? TASK_STEP_APART_S + task_before_eval_s(&room) : TASK_STEP_CHANGE_S) +
           task_collect_s(&task->collect) + task_collect_s(&step->eval.collect) +
           (step->eval_s ? step->eval_s : task->limits.eval_s) +
           (step->files.count || step->setup.count ? task->limits.init_s : 0);
}

static uint64_t steps_s(const struct task *task)
{
    uint64_t seconds = 0;
    for (size_t i = 0; i < task->step_count; i++)
        seconds += step_s(task, i);
    return seconds;
}

uint64_t task_after_run_s(const struct task *task)
{
    if (task->step_count > 0)
        return steps_s(task);
    return task_collect_s(&task->collect) + (task_is_evaluated_there(task) ? task->limits.eval_s : 0);
}
