/* models.h - from a model's name to its tool format, by models.def. */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_MODELS_H
#define SLUICE_WORKERS_AGENTS_FORMATS_MODELS_H

#include "workers/agents/formats/tool_format.h"

/* The form of the models of this name, as an engine tells it: by models.def. Never NULL. */
const struct tool_format *tool_format_of_model(const char *model);
/* A row of models.def; NULL: no more. */
const struct tool_format *tool_format_of_row(size_t i, const char **ret_part);

#endif
