/*
 * ipython.h - the ipython tool: one kernel per sandbox that keeps its variables from cell to cell,
 * about 0.3 ms a cell. IPython where the image has it, plain Python where not. What prints, C code
 * and child processes write comes in its true order; results follow as IPython shows them, pictures
 * as files that the text names.
 *
 * Or a Jupyter kernel of the image, of whatever language, with a driver of ours beside it in the
 * sandbox (jupyter_driver.py).
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_IPYTHON_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_IPYTHON_H

#include "workers/sandbox/sandbox.h"

struct ipython;

struct ipython_result {
    char *text; /* free; NUL-terminated, len bytes, UTF-8 */
    size_t len;
    uint64_t total; /* bytes it wrote */
    bool failed;    /* it raised, was interrupted or took the kernel down */
    bool timed_out;
    bool is_new; /* the variables of before are gone; the text says so */
    size_t images;
    uint64_t count; /* the cell's number: 1, 2, 3 ... of this kernel */
    double seconds;
};

/* The sandbox must outlive it. -ENOEXEC: the image has no python3, or one that does not run. */
int ipython_open(struct sandbox *sandbox, struct ipython **ret, struct fail *fail);
/* The Jupyter kernel of this kernelspec. -ENOEXEC: there is none, it does not start, or the
 * image has no pyzmq. */
int ipython_open_jupyter(struct sandbox *sandbox, const char *spec, struct ipython **ret, struct fail *fail);
void ipython_close(struct ipython **ipython); /* NULL-safe */

/*
 * Runs one cell. After timeout_ms it is interrupted; if it does not come back, its kernel is
 * killed. A kernel that died is replaced, and the text says that its variables are gone. At most
 * output_max bytes are kept. 0, or negative errno when the sandbox failed.
 */
int ipython_run(struct ipython *ipython, const char *code, int64_t timeout_ms, size_t output_max,
                struct ipython_result *ret, struct fail *fail);
/* A new kernel in place of the one there is. 0 or negative errno. */
int ipython_restart(struct ipython *ipython, struct fail *fail);
/* "Python 3.11.2, IPython 8.5.0"; borrowed. */
const char *ipython_about(const struct ipython *ipython);
/* The kernelspec of a Jupyter kernel; borrowed. */
const char *ipython_jupyter(const struct ipython *ipython);

#endif
