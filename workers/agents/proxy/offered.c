#include "workers/agents/proxy/offered.h"

#include <stdlib.h>
#include <string.h>

static bool add(struct offered *offered, const struct said_tool *said)
{
    struct offered_tool *added = &offered->each[offered->box.count];
    if (!schema_rows_read(said->parameters, &added->rows))
        return false;
    added->tool = (struct tool){.name = said->name, .doc = said->doc, .parameters = said->parameters};
    memcpy(added->tool.arguments, added->rows.list, sizeof(added->tool.arguments));
    offered->box.tools[offered->box.count++] = &added->tool;
    return true;
}

struct offered *offered_create(const struct said_tool *tools, size_t count)
{
    struct offered *offered = calloc(1, sizeof(*offered) + count * sizeof(*offered->each));
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
        schema_rows_finish(&(*offered)->each[i].rows);
    free(*offered);
    *offered = NULL;
}
