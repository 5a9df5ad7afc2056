/*
 * steps.h - a step of a task as a task of its own (docs/tasks/steps.md): what the step says itself, and else what the
 * task says. Who works on it, or judges it, sees such a task and needs to know nothing of steps.
 *
 * It has the step's prompt, files, setup and solution, none of the task's own; the task's evaluator with the step's
 * command, variables, sandbox and limits, and with the files and what is collected of both, the step's last; and no
 * steps.
 */
#ifndef SLUICE_SCHEMAS_TASK_STEPS_H
#define SLUICE_SCHEMAS_TASK_STEPS_H

#include "common/base/buffer.h"
#include "schemas/task/task.h"

/* Where the evaluator's files of steps lie; it is taken away when a step was evaluated. */
#define TASK_STEP_TESTS "/tests"

struct task_step_view {
    struct task task; /* borrows from the whole; never task_destroy it */
    struct task_message prompt;
    struct task_file *eval_files; /* of both; NULL where one alone has any */
    struct task_collect *collect; /* likewise */
};

/* The i-th of task->steps. False: out of memory. `ret` stays where it is until task_step_view_finish. */
bool task_step_view(const struct task *task, size_t i, struct task_step_view *ret);
void task_step_view_finish(struct task_step_view *view);
/* The same as text, with the step's name as "step"; `json` is one that task_parse has taken. False: out of memory. */
bool task_step_text(struct slice json, size_t i, struct buffer *ret);

/* Into `ret`, a copy of *task: where the i-th is evaluated, and what that sandbox is. */
void task_step_room(const struct task *task, size_t i, struct task *ret);
/* Whether that is a sandbox of the evaluator's own. */
bool task_step_is_apart(const struct task *task, size_t i);

/* Whether eval.command is given for every step of a task with steps. */
bool task_steps_have_commands(const struct task *task);

#endif
