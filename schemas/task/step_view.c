/* A step as a task of its own, as a struct and as text. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/cleanup.h"
#include "schemas/task/steps.h"

bool task_steps_have_commands(const struct task *task)
{
    for (size_t i = 0; i < task->step_count; i++)
        if (!task->steps[i].eval.command)
            return false;
    return task->step_count > 0;
}

/* ---- as a struct ------------------------------------------------------------------------------- */

static bool join_files(const struct task *task, const struct task_step *step, struct task_step_view *ret)
{
    const size_t own = task->eval_file_count, count = own + step->eval.files.count;
    if (step->eval.files.count == 0)
        return true;
    ret->eval_files = calloc(count, sizeof(*ret->eval_files));
    if (!ret->eval_files)
        return false;
    if (own > 0)
        memcpy(ret->eval_files, task->eval_files, own * sizeof(*ret->eval_files));
    memcpy(ret->eval_files + own, step->eval.files.each, step->eval.files.count * sizeof(*ret->eval_files));
    ret->task.eval_files = ret->eval_files;
    ret->task.eval_file_count = count;
    return true;
}

static bool join_collect(const struct task *task, const struct task_step *step, struct task_step_view *ret)
{
    const struct task_collect_list *tasks = &task->collect, *own = &step->eval.collect;
    if (own->count == 0)
        return true;
    ret->collect = calloc(tasks->count + own->count, sizeof(*ret->collect));
    if (!ret->collect)
        return false;
    if (tasks->count > 0)
        memcpy(ret->collect, tasks->each, tasks->count * sizeof(*ret->collect));
    memcpy(ret->collect + tasks->count, own->each, own->count * sizeof(*ret->collect));
    ret->task.collect = (struct task_collect_list){ret->collect, tasks->count + own->count};
    return true;
}

bool task_step_view(const struct task *task, size_t i, struct task_step_view *ret)
{
    const struct task_step *step = &task->steps[i];
    *ret = (struct task_step_view){.task = *task,
                                   .prompt = {(char *)(uintptr_t) "user", (char *)(uintptr_t)step->prompt}};
    struct task *view = &ret->task;
    view->arena = (struct arena){0};
    view->steps = NULL;
    view->step_count = 0;
    view->messages = &ret->prompt;
    view->message_count = 1;
    view->files = step->files.each;
    view->file_count = step->files.count;
    view->setup = step->setup.each;
    view->setup_count = step->setup.count;
    view->solution_files = step->solution.files.each;
    view->solution_file_count = step->solution.files.count;
    view->solution_commands = step->solution.commands.each;
    view->solution_command_count = step->solution.commands.count;
    view->solution_env = step->solution.env;
    view->solution_answer = step->solution.answer;
    if (step->eval.command)
        view->eval_command = step->eval.command;
    if (step->eval.env.each)
        view->eval_env = step->eval.env;
    if (step->eval_s > 0)
        view->limits.eval_s = step->eval_s;
    if (step->run_s > 0 && step->run_s < view->limits.run_s)
        view->limits.run_s = step->run_s;
    task_step_room(task, i, view);
    return join_files(task, step, ret) && join_collect(task, step, ret);
}

void task_step_view_finish(struct task_step_view *view)
{
    free(take_ptr(&view->eval_files));
    free(take_ptr(&view->collect));
}

/* ---- as text ------------------------------------------------------------------------------------ */

/* What the step says in place of what the whole says; where it says nothing, nothing. */
static bool replace(json_t *whole, json_t *step, const char *key)
{
    json_t *value = json_object_get(step, key);
    if (value)
        return json_object_set(whole, key, value) == 0;
    json_object_del(whole, key);
    return true;
}

static bool overlay(json_t *into, json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    return !value || json_object_set(into, key, value) == 0;
}

/* In whichever of their two forms. */
static bool add_files(json_t *list, json_t *files)
{
    const char *path;
    json_t *text;
    bool good = json_is_object(files) || !files || json_array_extend(list, files) == 0;
    json_object_foreach(files, path, text)
        good = good && json_array_append_new(list, json_pack("{s:s, s:O}", "path", path, "text", text)) == 0;
    return good;
}

static bool join_eval_files(json_t *eval, json_t *step)
{
    json_t *files = json_object_get(eval, "files"), *own = json_object_get(step, "files");
    json_t *list = own ? json_array() : NULL;
    if (!own)
        return true;
    const bool good = list && add_files(list, files) && add_files(list, own) &&
                      json_object_set(eval, "files", list) == 0;
    json_decref(list);
    return good;
}

static bool join_eval_collect(json_t *eval, json_t *step)
{
    json_t *tasks = json_object_get(eval, "collect"), *own = json_object_get(step, "collect");
    json_t *list = own ? json_array() : NULL;
    if (!own)
        return true;
    const bool good = list && (!tasks || json_array_extend(list, tasks) == 0) && json_array_extend(list, own) == 0 &&
                      json_object_set(eval, "collect", list) == 0;
    json_decref(list);
    return good;
}

/* As task_step_room has it. */
static bool join_room(json_t *eval, json_t *step)
{
    static const char *const room[] = {"artifacts", "network", "image", "build", "workdir", "user", "trust"};
    const char *tasks = json_string_value(json_object_get(eval, "sandbox"));
    const char *own = json_string_value(json_object_get(step, "sandbox"));
    bool good = overlay(eval, step, "sandbox");
    for (size_t i = 0; i < sizeof(room) / sizeof(room[0]) && good; i++) {
        const bool is_base = strcmp(room[i], "image") == 0 || strcmp(room[i], "build") == 0;
        if ((own && strcmp(own, "agent") == 0 && !(tasks && strcmp(tasks, "agent") == 0)) ||
            (is_base && (json_object_get(step, "image") || json_object_get(step, "build"))))
            json_object_del(eval, room[i]);
        good = overlay(eval, step, room[i]);
    }
    return good;
}

/* The object `key` of the whole, made where there is none; borrowed. */
static json_t *part_of(json_t *whole, const char *key)
{
    json_t *part = json_object_get(whole, key);
    if (part || json_object_set_new(whole, key, json_object()) < 0)
        return part;
    return json_object_get(whole, key);
}

static bool become_step(json_t *whole, json_t *step)
{
    static const char *const own[] = {"prompt", "files", "setup", "solution"};
    json_t *eval = part_of(whole, "eval"), *limits = part_of(whole, "limits");
    json_t *its = json_object_get(step, "eval"), *least = json_object_get(step, "limits");
    bool good = eval && limits && json_object_set(whole, "step", json_object_get(step, "name")) == 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && good; i++)
        good = replace(whole, step, own[i]);
    json_object_del(whole, "steps");
    json_object_del(whole, "steps_reward");
    return good && overlay(eval, its, "command") && overlay(eval, its, "env") && join_eval_files(eval, its) &&
           join_eval_collect(eval, its) && join_room(eval, its) && overlay(limits, least, "run_s") &&
           overlay(limits, least, "eval_s");
}

bool task_step_text(struct slice json, size_t i, struct buffer *ret)
{
    json_t *whole = json_loadb((const char *)json.data, json.len, 0, NULL);
    json_t *step = json_incref(json_array_get(json_object_get(whole, "steps"), i));
    AUTO_FREE char *text = step && become_step(whole, step) ? json_dumps(whole, JSON_COMPACT) : NULL;
    json_decref(step);
    json_decref(whole);
    if (text)
        buffer_append_str(ret, text);
    return text && !ret->failed;
}
