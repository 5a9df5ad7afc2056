/*
 * apptainer_container.h - a container by apptainer, from outside: its directories, then this process becomes that
 * program.
 */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_CONTAINER_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_CONTAINER_H

#include "workers/sandbox/backends/apptainer/apptainer.h"

/* Where containers will be, each in a directory of its own; once, before any. `program`: the file of
 * apptainer_main.c's. */
int apptainer_prepare(const char *directory, int program, struct fail *fail);
/* The way's build, in the process that becomes apptainer: comes back only when that failed. */
int apptainer_container_build(const struct container_plan *plan, struct container *ret, struct fail *fail);

#endif
