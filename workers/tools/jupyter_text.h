/* jupyter_text.h - what a Jupyter kernel publishes, as text for a model. */
#ifndef SLUICE_WORKERS_TOOLS_JUPYTER_TEXT_H
#define SLUICE_WORKERS_TOOLS_JUPYTER_TEXT_H

#include <jansson.h>

#include "workers/sandbox/output.h"

/* Adds a message of this type: streams, results, errors without colours. How many pictures it had. */
size_t jupyter_text_append(struct output *output, const char *type, const json_t *content);

#endif
