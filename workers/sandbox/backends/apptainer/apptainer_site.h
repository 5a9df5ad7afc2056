/*
 * apptainer_site.h - a container by apptainer while it is made, from outside: shared by apptainer_container.c (its
 * directories, and becoming apptainer) and apptainer_show.c (what of an image is mounted). Nobody else
 * includes it.
 */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_SITE_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_SITE_H

#include "workers/sandbox/backends/apptainer/apptainer.h"

struct site { /* where all of one container lies */
    const struct container_plan *plan;
    char path[CONTAINER_PATH_SIZE - 64];       /* of plan->disk, absolute */
    const char *session;                       /* where apptainer mounts what it works with ... */
    char containers[CONTAINER_PATH_SIZE - 64]; /* ... and where all containers of this cache are: never shown */
    int disk, root;
    struct apptainer_command command;
};

/* What is there already is left as it is. */
int site_make_dir(int at, const char *name, mode_t mode, struct fail *fail);
int site_make_file(int at, const char *name, mode_t mode, struct slice bytes, struct fail *fail);
/* A descriptor, no link; or negative errno. */
int site_open_dir(int at, const char *name, struct fail *fail);

#endif
