/* eval.artifacts and eval.collect: what an evaluator is given of the agent's files, and what is run before they are
 * taken. */
#include <stdlib.h>
#include <string.h>

#include "schemas/task/task_read.h"

static const char artifact_path[] = "eval.artifacts[]", collect_path[] = "eval.collect[]";

enum { PATTERN_MAX = 4096 };

/* A path alone is an object of it. */
static bool read_artifact(const struct task_place *place, const json_t *value, struct task_artifact *artifact)
{
    if (!json_is_string(value))
        return task_read_object(place, artifact_path, value, artifact);
    json_t *object = json_pack("{s:O}", "path", value);
    const bool good = object ? task_read_object(place, artifact_path, object, artifact) : place_out_of_memory(place);
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
        if (!read_artifact(&element, json_array_get(value, i), artifact))
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
        task_read_defaults(collect_path, collect);
        if (!task_read_object(&element, collect_path, json_array_get(value, i), collect))
            return false;
    }
    return true;
}
