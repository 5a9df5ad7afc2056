/*
 * schema_rows.h - the top of a JSON Schema as rows of tools/tool.h, for the forms of calls that write arguments one by
 * one: the first TOOL_ARGUMENTS_MAX - 1 properties that are strings, integers, booleans or lists of integers. What else
 * there is has no row, and is said in the form's own way.
 */
#ifndef SLUICE_WORKERS_TOOLS_SCHEMA_ROWS_H
#define SLUICE_WORKERS_TOOLS_SCHEMA_ROWS_H

#include "workers/tools/tool.h"

struct schema_rows {
    struct tool_argument list[TOOL_ARGUMENTS_MAX]; /* borrows names and docs from the schema */
    char *words[TOOL_ARGUMENTS_MAX];
};

/* The schema must live as long. False when out of memory: nothing is kept. */
bool schema_rows_read(const json_t *schema, struct schema_rows *ret);
void schema_rows_finish(struct schema_rows *rows);

#endif
