#include "workers/stages/sandbox/stage_environment.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

/* What the task says, which is of its own image; NULL: nothing. */
static const char *told_workdir(const struct stage_sandbox *stage, const struct task *task)
{
    const bool is_evaluators = stage->part == STAGE_EVALUATORS;
    if (is_evaluators && task->eval_workdir)
        return task->eval_workdir;
    return is_evaluators && task_has_own_image(task) ? NULL : task->workdir;
}

static const char *told_user(const struct stage_sandbox *stage, const struct task *task)
{
    const bool is_evaluators = stage->part == STAGE_EVALUATORS;
    if (is_evaluators && task->eval_user)
        return task->eval_user;
    return is_evaluators && task_has_own_image(task) ? NULL : task->user;
}

static const char *workdir_of(const char *told, const struct stage_sandbox *stage)
{
    if (!told)
        told = stage->image.config.workdir;
    return told ? told : "/workspace";
}

const char *stage_agents_workdir(const struct stage_sandbox *stage, const struct job *job)
{
    return workdir_of(job->task->workdir, stage);
}

const char *stage_sandbox_workdir(const struct stage_sandbox *stage, const struct job *job)
{
    return workdir_of(told_workdir(stage, job->task), stage);
}

size_t stage_sandbox_roots(const struct stage_sandbox *stage, const char *roots[STAGE_LAYERS_MAX + 1])
{
    size_t count = 0;
    for (size_t i = stage->layer_count; i-- > 0;)
        roots[count++] = stage->layers[i].path;
    roots[count++] = stage->image.path;
    return count;
}

/* Over those of the task. */
static const struct task_variables *variables_of(const struct stage_sandbox *stage, const struct task *task)
{
    if (stage->part == STAGE_EVALUATORS)
        return &task->eval_env;
    return stage->part == STAGE_AGENTS && strcmp(task->agent_kind, "oracle") == 0 ? &task->solution_env : NULL;
}

int stage_sandbox_environment(const struct stage_sandbox *stage, const struct job *job, const char *user,
                              struct environment *ret, struct fail *fail)
{
    const struct task *task = job->task;
    const char *roots[STAGE_LAYERS_MAX + 1];
    const size_t count = stage_sandbox_roots(stage, roots);
    const bool is_builds = stage->part == STAGE_BUILDS; /* the Dockerfile's alone */
    const bool is_own = stage->part == STAGE_EVALUATORS && task_has_own_image(task);
    const struct environment_sources sources = {
        .image = &stage->image.config,
        .user = is_builds ? NULL
                : user    ? user
                          : told_user(stage, task),
        .workdir = is_builds ? NULL : told_workdir(stage, task),
        .variables = {is_builds || is_own ? NULL : &task->env, is_builds ? NULL : variables_of(stage, task)},
        .roots = roots,
        .root_count = count};
    return environment_make(&sources, ret, fail);
}

int stage_sandbox_home(const struct stage_sandbox *stage, const struct job *job, const char *user, char **ret,
                       struct fail *fail)
{
    struct environment environment = {0};
    int code = stage_sandbox_environment(stage, job, user, &environment, fail);
    const char *home = code == 0 ? image_config_get(&environment.values, "HOME") : NULL;
    *ret = home ? strdup(home) : NULL;
    environment_finish(&environment);
    return home && !*ret ? fail_memory(fail) : code;
}
