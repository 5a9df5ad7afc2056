/*
 * kernel.h - one process that runs cells in a sandbox (ipython_driver.py), or has a Jupyter kernel
 * run them (jupyter_driver.py), and the wire to it: a socket pair of which it alone has the other
 * end, and a file without a name for what it writes.
 * What comes back was in the agent's hands: frames are bounded, and a broken one ends the kernel.
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_KERNEL_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_KERNEL_H

#include <jansson.h>

#include "workers/sandbox/output.h"
#include "workers/sandbox/sandbox.h"

enum { KERNEL_FRAME_MAX = 65536 };

struct kernel {
    struct sandbox *sandbox; /* must outlive it */
    char jupyter[65];        /* the kernelspec of the Jupyter kernel; "": it runs cells itself */
    pid_t pid;               /* 0: none is running */
    int socket, output;
    uint64_t seen;   /* of the output */
    char about[192]; /* "Python 3.11.2, IPython 8.5.0": what runs the cells */
    uint8_t frame[4 + KERNEL_FRAME_MAX];
    size_t frame_len;
    bool is_closed; /* by its end */
    bool is_forked; /* by the fork server of the image */
};

/* A kernel without a process. */
void kernel_init(struct kernel *kernel, struct sandbox *sandbox);
/* The same, of the Jupyter kernel with this kernelspec; a name too long is as good as any that there is not. */
void kernel_init_jupyter(struct kernel *kernel, struct sandbox *sandbox, const char *spec);
/* Lets go of the process without waiting: it reads the end of its socket and ends. Idempotent. */
void kernel_finish(struct kernel *kernel);

/*
 * Starts one and awaits that it is ready. 0; -ENOEXEC: there is no python3, it does not run, or has no
 * such Jupyter kernel (words say what it wrote); other negative errno: the sandbox failed, late, cancelled.
 */
int kernel_start(struct kernel *kernel, struct fail *fail);
/* The same without the fork server of the image, which kernel_start tries first. */
int kernel_start_here(struct kernel *kernel, struct fail *fail);
/* Kills it and its descendants and awaits its end. 0 or negative errno. */
int kernel_kill(struct kernel *kernel, struct fail *fail);

/* False when it does not take the message: it ended, or is stuck. */
bool kernel_send(struct kernel *kernel, const json_t *message);

/* What came of it by until_ms: */
enum kernel_news {
    KERNEL_SILENT,
    KERNEL_SAID,  /* *ret is its message, the caller's */
    KERNEL_ENDED, /* *status as sandbox_wait */
    KERNEL_BROKEN /* it says what nobody understands */
};
/* One of them, or negative errno. */
int kernel_await(struct kernel *kernel, int64_t until_ms, json_t **ret, int *status, struct fail *fail);

/* What it wrote since the last time; the memory of it is given back. */
void kernel_collect(struct kernel *kernel, struct output *output);

#endif
