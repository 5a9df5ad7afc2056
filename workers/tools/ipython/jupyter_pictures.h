/*
 * jupyter_pictures.h - pictures among a Jupyter kernel's results, saved as files of the sandbox that
 * the text names, as ipython_driver.py does with those of its own: /workspace/.sluice/<kernel>-<n>.png.
 * With the rights of the processes inside; bounded in number and bytes.
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_PICTURES_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_PICTURES_H

#include <jansson.h>

#include "workers/sandbox/output.h"
#include "workers/sandbox/sandbox.h"

struct jupyter_pictures {
    struct sandbox *sandbox;
    const char *base; /* of the files' names; borrowed */
    unsigned saved, number;
    size_t bytes;
};

/* Saves the first picture of a MIME bundle and adds a line that says where it is, or why it is
 * nowhere. In a fiber. False: there is none. */
bool jupyter_pictures_take(struct jupyter_pictures *pictures, const json_t *bundle,
                           struct output *output);

#endif
