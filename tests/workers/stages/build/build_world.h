/*
 * build_world.h - tasks with a Dockerfile, in the stages of kinds_world.h: FROM plain is plain_image.h, the context is
 * the directory `contexts`.
 */
#ifndef SLUICE_TESTS_WORKERS_STAGES_BUILD_WORLD_H
#define SLUICE_TESTS_WORKERS_STAGES_BUILD_WORLD_H

#include "tests/workers/stages/plain_image.h"

#include <jansson.h>

#include "workers/images/names.h"
#include "workers/sources/task_dirs.h"

static struct task_dirs task_dirs;
static struct image_names image_names;
static char contexts[128];

static inline int set_up_build(void **state)
{
    char name[256];
    struct fail fail = {0};
    if (set_up_kinds(state) < 0)
        return -1;
    make_dir(contexts, sizeof(contexts), "contexts");
    make_plain_image("base");
    snprintf(name, sizeof(name), "docker.io/library/plain:latest=%s/base", directory);
    task_dirs = (struct task_dirs){.own = &offered};
    image_names = (struct image_names){.list = &offered};
    context.task_dirs = &task_dirs;
    context.image_names = &image_names;
    return task_dirs_add(&task_dirs, contexts, &fail) < 0 ? -1 : image_names_add(&image_names, name, &fail);
}

static inline int tear_down_build(void **state)
{
    char command[256];
    snprintf(command, sizeof(command), "chmod -R u+rwX %s/base %s", directory, contexts);
    assert_int_equal(system(command), 0);
    task_dirs_finish(&task_dirs);
    image_names_finish(&image_names);
    return tear_down_kinds(state);
}

static inline void host(const char *command)
{
    char whole[2048];
    snprintf(whole, sizeof(whole), "cd %s && %s", contexts, command);
    assert_int_equal(system(whole), 0);
}

/* A task with this Dockerfile, the context directory, and more fields behind a comma. */
static inline const char *task_of(const char *dockerfile, const char *prompt, const char *rest)
{
    static char text[1 << 16];
    json_t *task = json_pack("{s:s, s:s, s:{s:s, s:s}}", "task", "t", "prompt", prompt, "build", "dockerfile",
                             dockerfile, "context", contexts);
    json_t *more = json_loads(rest, 0, NULL), *build = json_object_get(more, "build");
    assert_non_null(more);
    json_object_update(json_object_get(task, "build"), build);
    json_object_del(more, "build");
    json_object_update(task, more);
    char *dumped = json_dumps(task, JSON_COMPACT);
    assert_true(snprintf(text, sizeof(text), "%s", dumped) < (int)sizeof(text));
    free(dumped);
    json_decref(more);
    json_decref(task);
    return text;
}

/* What the agent's command prints in what the Dockerfile makes. */
static inline void expect_built(const char *dockerfile, const char *prompt, const char *printed)
{
    struct job eval = run_task(task_of(dockerfile, prompt, "{\"eval\":{\"kind\":\"command\",\"command\":\"true\"}}"));
    expect(&eval, OUTCOME_OK, "");
    if (strcmp(agent_output, printed) != 0)
        fail_msg("printed: %s", agent_output);
    end_job(&eval);
}

static inline void expect_failed(const char *dockerfile, const char *rest, const char *words)
{
    expect_init(task_of(dockerfile, "true", rest), OUTCOME_TASK, words);
}

#endif
