#include "workers/agents/proxy/offered.h"

#include <stdlib.h>
#include <string.h>

static bool add(struct offered *offered, const struct said_tool *said)
{
    const size_t i = offered->box.count;
    struct tool *tool = &offered->tools[i];
    if (!schema_rows_read(said->parameters, &offered->rows[i]))
        return false;
    *tool = (struct tool){.name = said->name, .doc = said->doc, .parameters = said->parameters};
    memcpy(tool->arguments, offered->rows[i].list, sizeof(tool->arguments));
    offered->box.tools[offered->box.count++] = tool;
    return true;
}

struct offered *offered_create(const struct said_tool *tools, size_t count)
{
    struct offered *offered = calloc(1, sizeof(*offered));
    for (size_t i = 0; i < count && offered; i++)
        if (!add(offered, &tools[i]))
            offered_destroy(&offered);
    return offered;
}

void offered_destroy(struct offered **offered)
{
    if (!*offered)
        return;
    for (size_t i = 0; i < (*offered)->box.count; i++)
        schema_rows_finish(&(*offered)->rows[i]);
    free(*offered);
    *offered = NULL;
}
