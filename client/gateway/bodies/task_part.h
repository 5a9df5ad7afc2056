/* task_part.h - an object of a task, such as "limits". */
#ifndef SLUICE_CLIENT_GATEWAY_BODIES_TASK_PART_H
#define SLUICE_CLIENT_GATEWAY_BODIES_TASK_PART_H

#include <jansson.h>

/* The task's; made where it is not there. NULL: what is there is no object, which the broker refuses. */
json_t *task_part(json_t *task, const char *name);

#endif
