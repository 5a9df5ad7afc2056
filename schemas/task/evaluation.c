/* Where a task without steps is evaluated, on what, and how long that may take beside the evaluator's own time. */
#include <string.h>

#include "schemas/task/task.h"

bool task_has_verifier(const struct task *task) { return strcmp(task->eval_kind, "verifier") == 0; }

bool task_is_posted(const struct task *task) { return strcmp(task->eval_kind, "posted") == 0; }

bool task_is_evaluated_there(const struct task *task) { return strcmp(task->eval_sandbox, "agent") == 0; }

bool task_is_evaluated_by_run(const struct task *task) { return task->step_count > 0 || task_is_evaluated_there(task); }

bool task_has_own_image(const struct task *task) { return task->eval_image || task->eval_build.dockerfile; }

uint64_t task_before_eval_s(const struct task *task)
{
    return task->eval_build.dockerfile ? task->eval_build.timeout_s : 0;
}

struct task_base task_base_of_agent(const struct task *task) { return (struct task_base){task->image, &task->build}; }

struct task_base task_base_of_evaluator(const struct task *task)
{
    return task_has_own_image(task) ? (struct task_base){task->eval_image, &task->eval_build}
                                    : task_base_of_agent(task);
}

uint64_t task_collect_s(const struct task_collect_list *collect)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < collect->count; i++)
        sum += collect->each[i].timeout_s;
    return sum;
}

const char *task_reward_dir(const struct task *task)
{
    return task->eval_reward_dir ? task->eval_reward_dir : TASK_REWARD_DIR;
}
