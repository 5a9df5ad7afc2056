/*
 * kernel.h - a driver (driver.h) that runs cells in a sandbox (ipython_driver.py), or has a Jupyter kernel run them
 * (jupyter_driver.py).
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_KERNEL_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_KERNEL_H

#include "workers/inside/driver.h"

struct kernel {
    struct driver driver;
    char jupyter[65]; /* the kernelspec of the Jupyter kernel; "": it runs cells itself */
    char about[192];  /* "Python 3.11.2, IPython 8.5.0": what runs the cells */
    bool is_forked;   /* by the fork server of the image */
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

#endif
