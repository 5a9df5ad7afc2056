#include "client/gateway/bodies/task_part.h"

json_t *task_part(json_t *task, const char *name)
{
    json_t *part = json_object_get(task, name);
    if (!part)
        json_object_set_new(task, name, part = json_object());
    return json_is_object(part) ? part : NULL;
}
