#include "client/cli/grade/grade_jobs.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/nearest.h"
#include "schemas/task/task.h"

/* ---- what a task needs here ---------------------------------------------------------------------- */

static bool add_need(struct grade_jobs *jobs, const char *name)
{
    for (size_t i = 0; i < jobs->need_count; i++)
        if (strcmp(jobs->needs[i] + strlen("evaluator:"), name) == 0)
            return true;
    return jobs->need_count < GRADE_NEEDS_MAX && asprintf(&jobs->needs[jobs->need_count++], "evaluator:%s", name) > 0;
}

static int check_handler(struct grade_jobs *jobs, const struct task *task, struct fail *fail)
{
    char hint[NEAREST_TEXT_SIZE];
    struct nearest nearest = {.wanted = slice_from_str(task->eval_kind)};
    if (task_evaluator_is_built_in(task) || task_handler_find(task, task->eval_kind))
        return 0;
    for (size_t n = 0; handler_built_in(HANDLER_EVALUATOR, n).len; n++)
        nearest_offer(&nearest, handler_built_in(HANDLER_EVALUATOR, n));
    if (!jobs->options->handlers.count)
        return fail_set(fail, -EINVAL, "the evaluator %s comes from a handler: --handler NAME='COMMAND' starts one%s",
                        task->eval_kind, nearest_text(&nearest, "", hint));
    return add_need(jobs, task->eval_kind)
               ? 0
               : fail_set(fail, -E2BIG, "more than %d evaluators of handlers: grade them apart", GRADE_NEEDS_MAX);
}

static int check_judge(struct grade_jobs *jobs, const struct task *task, struct fail *fail)
{
    if (!task_needs_judge(task))
        return 0;
    if (!jobs->options->engines.count)
        return fail_set(fail, -EINVAL, "a model judges it: --engine URL names its engine");
    if (!jobs->policy && !(jobs->policy = strdup(task->judge.policy)))
        return fail_memory(fail);
    return strcmp(jobs->policy, task->judge.policy) == 0
               ? 0
               : fail_set(fail, -EINVAL, "its judge is of the policy %s, another's of %s: grade them apart",
                          task->judge.policy, jobs->policy);
}

static int check(struct grade_jobs *jobs, const char *json, struct fail *fail)
{
    struct refusal no = {0};
    struct task *task = task_parse(slice_from_str(json), &no);
    if (!task)
        return fail_set(fail, -EINVAL, "%s", no.text);
    int code = strcmp(task->eval_kind, "none") == 0 || strcmp(task->kind, "noop") == 0
                   ? fail_set(fail, -EINVAL, "it has no evaluator (eval.kind): nothing can grade it")
                   : check_handler(jobs, task, fail);
    if (code == 0)
        code = check_judge(jobs, task, fail);
    task_destroy(task);
    return code;
}

/* ---- jobs ---------------------------------------------------------------------------------------- */

struct grade_job *grade_jobs_add(struct grade_jobs *jobs)
{
    if (jobs->count == jobs->capacity) {
        const size_t capacity = jobs->capacity ? jobs->capacity * 2 : 64;
        struct grade_job *each = realloc(jobs->each, capacity * sizeof(*each));
        if (!each)
            return NULL;
        jobs->each = each;
        jobs->capacity = capacity;
    }
    struct grade_job *job = &jobs->each[jobs->count++];
    *job = (struct grade_job){0};
    return job;
}

int grade_jobs_make(struct grade_jobs *jobs, struct grade_job *job, const struct task_line *line,
                    const struct grade_left *left, struct fail *fail)
{
    AUTO_FREE char *json = grade_left_task(line->json, left, &jobs->dirs, fail);
    if (!json)
        return fail->code;
    int code = check(jobs, json, fail);
    if (code == 0 && !(job->task = strdup(line->id)))
        code = fail_memory(fail);
    if (code == 0)
        job->json = take_ptr(&json);
    return code;
}

const struct task_line *grade_jobs_find(const struct grade_jobs *jobs, const char *id)
{
    for (size_t i = 0; i < jobs->tasks.count; i++)
        if (strcmp(jobs->tasks.lines[i].id, id) == 0)
            return &jobs->tasks.lines[i];
    return NULL;
}

void grade_jobs_finish(struct grade_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++) {
        free(jobs->each[i].json);
        free(jobs->each[i].task);
        free(jobs->each[i].printed);
    }
    for (size_t i = 0; i < jobs->need_count; i++)
        free(jobs->needs[i]);
    free(jobs->each);
    free(jobs->policy);
    grade_dirs_finish(&jobs->dirs);
    tasks_finish(&jobs->tasks);
    *jobs = (struct grade_jobs){0};
}
