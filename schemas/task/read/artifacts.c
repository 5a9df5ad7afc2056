/* eval.artifacts and eval.collect: what an evaluator is given of the agent's files, and what is run before they are
 * taken. */
#include <stdlib.h>
#include <string.h>

#include "schemas/task/read/task_read.h"

static const char artifact_path[] = "eval.artifacts[]", collect_path[] = "eval.collect[]";

enum { PATTERN_MAX = 4096 };

/* A path alone is an object of it. */
static bool read_fields(const struct task_place *place, struct task_value value, struct task_artifact *artifact)
{
    return task_value_is(value, JSON_DOC_STRING) ? task_read_member(place, artifact_path, "path", value, artifact)
                                                 : task_read_object(place, artifact_path, value, artifact);
}

static bool read_artifact(const struct task_place *place, struct task_value value, void *into)
{
    const struct task_artifact *artifact = into;
    if (!read_fields(place, value, into))
        return false;
    return artifact->path[strspn(artifact->path, "/.")] != '\0' ||
           refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                  "%s must name a file or a directory below / and the working directory", place->shown);
}

bool task_read_artifacts(const struct task_place *place, struct task_value value)
{
    struct task_artifact_list *list = place_member(place);
    return place_read_list(place, value, sizeof(*list->each), read_artifact, &list->each, &list->count);
}

bool task_read_exclude(const struct task_place *place, struct task_value value)
{
    struct task_artifact *artifact = place->base;
    return place_read_texts(place, value, PATTERN_MAX, &artifact->exclude, &artifact->exclude_count);
}

static bool read_collect(const struct task_place *place, struct task_value value, void *into)
{
    task_read_defaults(collect_path, into);
    return task_read_object(place, collect_path, value, into);
}

bool task_read_collect(const struct task_place *place, struct task_value value)
{
    struct task_collect_list *list = place_member(place);
    return place_read_list(place, value, sizeof(*list->each), read_collect, &list->each, &list->count);
}
