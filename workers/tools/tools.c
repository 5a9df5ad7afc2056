/* tools.c - the table of tools. */
#include "workers/tools/tools.h"

static const struct tool *const tools[] = {&tool_bash,   &tool_ipython, &tool_edit,
                                           &tool_search, &tool_think,   &tool_submit};

const struct tool *tool_at(size_t i) { return i < sizeof(tools) / sizeof(*tools) ? tools[i] : NULL; }

const struct tool *tool_find(const char *name)
{
    for (size_t i = 0; tool_at(i); i++)
        if (strcmp(tool_at(i)->name, name) == 0)
            return tool_at(i);
    return NULL;
}
