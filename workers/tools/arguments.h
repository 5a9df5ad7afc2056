/* arguments.h - a tool's arguments: told to a model, checked, taken. */
#ifndef SLUICE_WORKERS_TOOLS_ARGUMENTS_H
#define SLUICE_WORKERS_TOOLS_ARGUMENTS_H

#include "workers/tools/tool.h"

const char *tool_type_word(enum tool_type type); /* as JSON Schema has it */

/* NULL where it was not given. */
const char *tool_string(const json_t *arguments, const char *name);
int64_t tool_integer(const json_t *arguments, const char *name, int64_t otherwise);
bool tool_boolean(const json_t *arguments, const char *name); /* false where not given */

/* {"type": "function", "function": {"name", "description", "parameters": JSON Schema}}; NULL: no
 * memory. The caller's. */
json_t *tool_describe(const struct tool *tool);
/* Whether `arguments` fits the tool's rows; false with a sentence for the model. */
bool tool_check(const struct tool *tool, const json_t *arguments, char *text, size_t size);

#endif
