/*
 * jupyter.h - a real Jupyter kernel of the sandbox, by the name of its kernelspec, over ZeroMQ on
 * Unix sockets: for languages and kernels other than our own driver's (ipython.h).
 *
 * The kernel binds its sockets in /run/sluice/out, which is this sandbox's alone; we open what lies
 * there without following links and connect to just that. Every message is signed.
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_H

#include "workers/tools/ipython/ipython.h"

struct jupyter;

/* -EINVAL: there is no such kernelspec in the image, or its kernel does not answer; -ENOEXEC: it
 * cannot be started. */
int jupyter_open(struct sandbox *sandbox, const char *spec, struct jupyter **ret, struct fail *fail);
void jupyter_close(struct jupyter **jupyter); /* NULL-safe; ends the kernel */
const char *jupyter_name(const struct jupyter *jupyter);

/* As ipython_run. After the kernel died or was killed, result->is_new: open another one. */
int jupyter_run(struct jupyter *jupyter, const char *code, int64_t timeout_ms, size_t output_max,
                struct ipython_result *ret, struct fail *fail);

#endif
