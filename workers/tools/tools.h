/* tools.h - the rows of the table in tools.c. */
#ifndef SLUICE_WORKERS_TOOLS_TOOLS_H
#define SLUICE_WORKERS_TOOLS_TOOLS_H

#include "workers/tools/tool.h"

extern const struct tool tool_bash, tool_ipython, tool_edit, tool_search, tool_submit, tool_think;

const struct tool *tool_find(const char *name); /* NULL: no such tool */
const struct tool *tool_at(size_t i);           /* in the table's order; NULL: no more */

#endif
