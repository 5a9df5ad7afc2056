/* tasks_json.h - the rows of task.def for other languages: what the Python client checks tasks by. */
#ifndef SLUICE_SCHEMAS_DESCRIBE_TASKS_JSON_H
#define SLUICE_SCHEMAS_DESCRIBE_TASKS_JSON_H

#include <stdbool.h>

/* Prints client/python/sluice/task/tasks.json. */
bool describe_tasks_json(void);

#endif
