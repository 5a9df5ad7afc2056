/* table.h - the rows of the table in tool_format.c. */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_TABLE_H
#define SLUICE_WORKERS_AGENTS_FORMATS_TABLE_H

#include "workers/agents/formats/tool_format.h"

extern const struct tool_format tool_format_hermes, tool_format_llama, tool_format_openhands, tool_format_qwen_coder;

#endif
