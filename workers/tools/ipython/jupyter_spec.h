/* jupyter_spec.h - kernelspecs of an image: how its Jupyter kernels are started. */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_SPEC_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_SPEC_H

#include "workers/sandbox/sandbox.h"

enum { JUPYTER_ARGS_MAX = 64 };

struct jupyter_spec {
    char *argv[JUPYTER_ARGS_MAX + 1]; /* NULL-terminated, for sandbox_start */
    bool by_message;                  /* interrupted by a message, not by a signal */
};

/* Of the kernel `name`, which is to read `connection_file`. 0; -EINVAL: there is none, or none that
 * can be understood. */
int jupyter_spec_read(struct sandbox *sandbox, const char *name, const char *connection_file,
                      struct jupyter_spec *ret, struct fail *fail);
void jupyter_spec_finish(struct jupyter_spec *spec);

#endif
