/* eval.artifacts and eval.collect: what an evaluator is given of the agent's files, and what is run before they are taken. */
#include <stdlib.h>
#include <string.h>

#include "schemas/task/task_read.h"

static const char artifact_path[] = "eval.artifacts[]", collect_path[] = "eval.collect[]";

enum { PATTERN_MAX = 4096 };

/* A path alone is an object of it. */
static bool read_artifact(const json_t *value, const char *shown, struct task_artifact *artifact, struct refusal *no)
{
    if (!json_is_string(value))
        return task_read_object(artifact_path, value, shown, artifact, no);
    json_t *object = json_pack("{s:O}", "path", value);
    const bool good = object ? task_read_object(artifact_path, object, shown, artifact, no)
                             : refuse(no, REFUSAL_TOO_LARGE, shown, "no memory to hold the task");
    json_decref(object);
    return good;
}

bool task_read_artifacts(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    if (!place_check_list(place, value) ||
        !place_make_list(place, json_array_size(value), sizeof(*task->artifacts), &task->artifacts))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct task_place element = place_of_element(place, i);
        struct task_artifact *artifact = &task->artifacts[task->artifact_count++];
        if (!read_artifact(json_array_get(value, i), element.shown, artifact, place->no))
            return false;
        if (artifact->path[strspn(artifact->path, "/.")] == '\0')
            return refuse(place->no, REFUSAL_BAD_TASK, element.shown,
                          "%s must name a file or a directory below / and the working directory", element.shown);
    }
    return true;
}

bool task_read_exclude(const struct task_place *place, const json_t *value)
{
    struct task_artifact *artifact = place->base;
    return place_read_texts(place, value, PATTERN_MAX, &artifact->exclude, &artifact->exclude_count);
}

bool task_read_collect(const struct task_place *place, const json_t *value)
{
    struct task *task = place->base;
    if (!place_check_list(place, value) ||
        !place_make_list(place, json_array_size(value), sizeof(*task->collect), &task->collect))
        return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        struct task_place element = place_of_element(place, i);
        struct task_collect *collect = &task->collect[task->collect_count++];
        if (!task_read_defaults(collect_path, collect, place->no) ||
            !task_read_object(collect_path, json_array_get(value, i), element.shown, collect, place->no))
            return false;
    }
    return true;
}

void task_finish_artifacts(struct task *task)
{
    for (size_t i = 0; i < task->artifact_count; i++) {
        free(task->artifacts[i].path);
        task_finish_texts(task->artifacts[i].exclude, task->artifacts[i].exclude_count);
    }
    for (size_t i = 0; i < task->collect_count; i++)
        free(task->collect[i].command);
    free(task->artifacts);
    free(task->collect);
}
