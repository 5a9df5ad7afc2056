/*
 * apptainer.h - containers made by an installed program `apptainer` (tier apptainer), for machines that forbid
 * user namespaces to us and not to it: its starter has the set-user-ID bit, or an AppArmor profile.
 *
 *     spawner -- fork --> apptainer_container_build: directories, then execs
 *                         apptainer exec ... ROOT /.sluice/init
 *                           `-- pid 1 of the container: apptainer_main, init.c as in every container
 *
 * ROOT is a skeleton of ours: a mount point for each name at the top of the image, bound read-only. So
 * nothing of an image is read, and none of its scripts run, before the container's own pid 1 is confined. That
 * is a program of its own, linked statically, whose bytes are part of this one: the image's libraries
 * may be any.
 *
 *     <plan->disk>/upper/{workspace,tmp}   what those inside can write, copied from image and layers
 *     <plan->disk>/{shm,run,run/out}       /dev/shm; the commands and their outputs
 *     <plan->disk>/root, ../init           the skeleton, the program
 *
 * What a site's apptainer.conf switches off, apptainer leaves out with a warning or none: pid 1 therefore looks
 * whether each namespace is another one and each mount one of ours, before anything else runs.
 */
#ifndef SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_H
#define SLUICE_WORKERS_SANDBOX_BACKENDS_APPTAINER_APPTAINER_H

#include <limits.h>
#include "workers/sandbox/container/container.h"

enum {
    APPTAINER_BINDS_MAX = 128,
    APPTAINER_POINTS_SIZE = 16384,
    APPTAINER_NAMESPACES = 5,
    /* what the program finds open beside control and births: the container's upper, commands, outputs; then */
    APPTAINER_USAGES_FD = CONTAINER_BROUGHT_FD + 3,
    APPTAINER_HANDOVER_FD /* a struct apptainer_handover can be read from it */
};

/* What pid 1 of the container is told: written into a pipe before the program is executed. */
struct apptainer_handover {
    uint64_t size; /* of this */
    uint32_t id;
    struct wire_container container; /* its usage's place is among those of APPTAINER_USAGES_FD */
    uint64_t layer_count;
    uint64_t outside[APPTAINER_NAMESPACES]; /* apptainer_namespaces(), of who must not be ours */
    char points[APPTAINER_POINTS_SIZE];     /* "r/usr\0w/tmp\0\0": what is mounted where, for reading or writing */
};

/* ---- the command (apptainer.c) ----------------------------------------------------- */

struct apptainer_bind {
    char from[CONTAINER_PATH_SIZE];
    char to[NAME_MAX + 16];
    bool is_writable;
};

struct apptainer_command {
    struct apptainer_bind binds[APPTAINER_BINDS_MAX];
    size_t bind_count;
    char root[CONTAINER_PATH_SIZE];
};

/* -EINVAL for a path that cannot stand in an argument of apptainer's, -E2BIG for one too many. */
int apptainer_bind(struct apptainer_command *command, const char *from, const char *to, bool is_writable,
                   struct fail *fail);
/* NULL-ended, for execvpe; the caller's to free, each and all. NULL: no memory. */
char **apptainer_arguments(const struct apptainer_command *command);
void apptainer_free_arguments(char **arguments);
/* The whole environment: none of the worker's, which could bind more (APPTAINER_BIND). */
char *const *apptainer_environment(void);
/* The points of the handover. */
int apptainer_list_points(const struct apptainer_command *command, char ret[APPTAINER_POINTS_SIZE], struct fail *fail);

/* "apptainer version 1.4.5-2": 1 and 4. */
bool apptainer_parse_version(const char *text, unsigned *major, unsigned *minor);

#endif
