/*
 * offered.h - the tools that a harness offers, as the forms of calls have them (agents/formats): what the prompt says
 * of them, and what types the arguments of calls have. They are never called here: the harness does that.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_OFFERED_H
#define SLUICE_WORKERS_AGENTS_PROXY_OFFERED_H

#include "workers/agents/proxy/said.h"
#include "workers/tools/schema_rows.h"
#include "workers/tools/toolbox.h"

struct offered_tool {
    struct tool tool;
    struct schema_rows rows;
};

struct offered {
    struct toolbox box;
    struct offered_tool each[]; /* box.count of them */
};

/* Borrows the tools. NULL: out of memory. */
struct offered *offered_create(const struct said_tool *tools, size_t count);
void offered_destroy(struct offered **offered);

#endif
