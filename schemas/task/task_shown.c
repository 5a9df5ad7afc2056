#include "schemas/task/task_shown.h"

#include <jansson.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "schemas/task/json/task_member.h"

static bool hide_eval(json_t *object)
{
    json_t *eval = json_object_get(object, "eval");
    if (!eval)
        return true;
    json_t *kind = json_object_get(eval, "kind"), *shown = json_object();
    const bool good = shown && (!kind || json_object_set(shown, "kind", kind) == 0);
    return json_object_set_new(object, "eval", shown) == 0 && good;
}

/* Of the task or one of its steps. */
static bool hide(enum task_viewer viewer, json_t *object)
{
    json_object_del(object, "solution");
    return viewer != TASK_VIEWER_AGENT || hide_eval(object);
}

static bool hide_all(enum task_viewer viewer, json_t *task)
{
    json_t *steps = json_object_get(task, "steps");
    bool good = hide(viewer, task);
    for (size_t i = 0; i < json_array_size(steps) && good; i++)
        good = hide(viewer, json_array_get(steps, i));
    return good;
}

static bool has_secrets(enum task_viewer viewer, struct slice json)
{
    return task_member(json, "solution").len > 0 || task_member(json, "steps").len > 0 ||
           (viewer == TASK_VIEWER_AGENT && task_member(json, "eval").len > 0);
}

bool task_shown_to(enum task_viewer viewer, struct slice json, struct buffer *room, struct slice *ret)
{
    *ret = json;
    if (!has_secrets(viewer, json))
        return true;
    json_t *task = json_loadb((const char *)json.data, json.len, 0, NULL);
    AUTO_FREE char *text = task && hide_all(viewer, task) ? json_dumps(task, JSON_COMPACT) : NULL;
    json_decref(task);
    if (!text)
        return false;
    buffer_append_str(room, text);
    *ret = buffer_peek(room);
    return !room->failed;
}
