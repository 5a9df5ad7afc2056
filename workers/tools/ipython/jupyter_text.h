/* jupyter_text.h - what a Jupyter kernel publishes, as text for a model. */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_TEXT_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_TEXT_H

#include <jansson.h>

#include "workers/tools/ipython/jupyter_pictures.h"

/* Adds a message of this type: streams, results, errors without colours, and saves its pictures.
 * How many it had. */
size_t jupyter_text_append(struct output *output, struct jupyter_pictures *pictures,
                           const char *type, const json_t *content);

#endif
