/* tasks_page.h - docs/tasks.md, from task.def. */
#ifndef SLUICE_SCHEMAS_DESCRIBE_TASKS_PAGE_H
#define SLUICE_SCHEMAS_DESCRIBE_TASKS_PAGE_H

#include <stdbool.h>

/* False where a task that the page shows as refused is none. */
bool describe_tasks_md(void);

#endif
