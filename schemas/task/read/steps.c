/* steps: how they are read, and what they and the rest of a task say together. */
#include "schemas/task/steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "schemas/task/evaluators.h"
#include "schemas/task/read/task_read.h"

/* ---- reading ---------------------------------------------------------------------------------- */

static bool read_step(const struct task_place *place, struct task_value value, void *into)
{
    const struct task *task = place->base;
    const struct task_step *step = into;
    task_read_defaults("steps[].eval.build", into);
    if (!task_read_object(place, "steps[]", value, into))
        return false;
    for (size_t i = 0; i < task->step_count; i++)
        if (strcmp(task->steps[i].name, step->name) == 0)
            return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s: the name %s is given twice", place->shown,
                          step->name);
    return true;
}

bool task_read_steps(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return place_read_list(place, value, sizeof(*task->steps), read_step, &task->steps, &task->step_count);
}

static bool add_least(const struct task_place *place, const char *name, struct task_value value,
                      struct task_least_list *list)
{
    struct task_least *least = &list->each[list->count];
    const size_t len = strlen(name);
    double number;
    if (!json_doc_number(value.at, &number))
        return place_wrong_type(place, "a number, or an object of names and numbers");
    if (len == 0 || len > TASK_REWARD_NAME_MAX)
        return refuse(place->no, len ? REFUSAL_TOO_LARGE : REFUSAL_TOO_SMALL, place->shown,
                      "%s has a name of %zu bytes; a name has 1 to %d", place->shown, len, TASK_REWARD_NAME_MAX);
    memcpy(least->name, name, len + 1);
    least->value = number;
    list->count++;
    return true;
}

bool task_read_rewards(const struct task_place *place, struct task_value value)
{
    struct task_least_list *list = place_member(place);
    const size_t count = task_value_is(value, JSON_DOC_OBJECT) ? task_value_count(value) : 1;
    if ((task_value_is(value, JSON_DOC_OBJECT) && !place_check_bounds(place, (double)count, " elements")) ||
        !place_make_list(place, count, sizeof(*list->each), &list->each))
        return false;
    if (!task_value_is(value, JSON_DOC_OBJECT))
        return add_least(place, "reward", value, list);
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const char *name = place_text(place, each.name);
        if (!name || !add_least(place, name, each.value, list))
            return false;
    }
    return true;
}

/* ---- what they and the rest say together ---------------------------------------------------------- */

/* What each step has of its own. */
static bool check_alone(const struct task *task, struct refusal *no)
{
    if (task->message_count > 0)
        return refuse(no, REFUSAL_AMBIGUOUS, "steps",
                      "only one of prompt, messages and steps may be given: each step has a prompt of its own");
    if (task->solution_answer || task->solution_command_count || task->solution_file_count || task->solution_env.count)
        return refuse(no, REFUSAL_AMBIGUOUS, "solution",
                      "solution does not go with steps: each step has its own, steps[].solution");
    if (strcmp(task->agent_kind, TASK_SESSION) == 0)
        return refuse(no, REFUSAL_BAD_TASK, "agent.kind",
                      "agent.kind session does not go with steps: its loop is not told when one begins");
    return strcmp(task->agent_kind, "replay") != 0 ||
           refuse(no, REFUSAL_BAD_TASK, "agent.kind",
                  "agent.kind replay does not go with steps: nothing says which step a call belongs to");
}

/* It must be one that can judge between two steps. */
static bool check_evaluator(const struct task *task, struct refusal *no)
{
    if (task_evaluator_is_built_in(task) && !text_is_one_of(task->eval_kind, "command|verifier"))
        return refuse(no, REFUSAL_BAD_TASK, "eval.kind",
                      "eval.kind %s does not go with steps: each is evaluated by command, verifier or an evaluator of "
                      "a handler",
                      task->eval_kind);
    return true;
}

static bool is_below_tests(const struct task_file *file)
{
    static const size_t len = sizeof(TASK_STEP_TESTS) - 1;
    return strncmp(file->path, TASK_STEP_TESTS, len) == 0 &&
           (file->path[len] == '/' || (file->source && file->path[len] == '\0'));
}

static bool check_files(const char *field, const struct task_file *files, size_t count, struct refusal *no)
{
    char path[sizeof(no->field)];
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%.90s[%zu].path", field, i);
        if (!is_below_tests(&files[i]))
            return refuse(no, REFUSAL_BAD_TASK, path,
                          "%s must be below " TASK_STEP_TESTS " where steps are evaluated in the agent's own sandbox: "
                          "the agent of the next step must not find it, and that directory is taken away",
                          path);
    }
    return true;
}

/* Where the next agent may find them. */
static bool check_all_files(const struct task *task, struct refusal *no)
{
    bool is_found = false;
    for (size_t i = 0; i < task->step_count; i++)
        is_found |= !task_step_is_apart(task, i);
    return !is_found || check_files("eval.files", task->eval_files, task->eval_file_count, no);
}

static bool check_room(const struct task *task, size_t i, struct refusal *no)
{
    struct task room = *task;
    struct refusal inner = {0};
    char field[sizeof(no->field)];
    task_step_room(task, i, &room);
    if (task_check_room(&room, &inner))
        return true;
    snprintf(field, sizeof(field), "steps[%zu].%.100s", i, inner.field);
    return strncmp(inner.text, inner.field, strlen(inner.field)) == 0
               ? refuse(no, inner.reason, field, "steps[%zu].%s", i, inner.text)
               : refuse(no, inner.reason, field, "%s", inner.text);
}

static bool check_step(const struct task *task, size_t i, struct refusal *no)
{
    const struct task_step *step = &task->steps[i];
    char field[64];
    snprintf(field, sizeof(field), "steps[%zu].eval.command", i);
    if (step->eval.command && !task_evaluator_is_built_in(task))
        return refuse(no, REFUSAL_BAD_TASK, field, "%s goes with eval.kind command|verifier, and this task's is %s",
                      field, task->eval_kind);
    snprintf(field, sizeof(field), "steps[%zu].eval.files", i);
    return (task_step_is_apart(task, i) || check_files(field, step->eval.files.each, step->eval.files.count, no)) &&
           check_room(task, i, no);
}

bool task_check_steps(const struct task *task, struct refusal *no)
{
    if (task->step_count == 0)
        return strcmp(task->steps_reward, "mean") == 0 ||
               refuse(no, REFUSAL_BAD_TASK, "steps_reward", "steps_reward goes with steps, and this task has none");
    if (!check_alone(task, no) || !check_evaluator(task, no) || !check_all_files(task, no))
        return false;
    for (size_t i = 0; i < task->step_count; i++)
        if (!check_step(task, i, no))
            return false;
    return true;
}
