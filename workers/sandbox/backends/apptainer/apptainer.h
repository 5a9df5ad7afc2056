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

/* The first line of what `arguments` (NULL-ended) print; within 5 s. */
int apptainer_ask(const char *const *arguments, char *ret, size_t size, struct fail *fail);
/* All that can be read before the other end is closed, or the same time has passed. */
void apptainer_read_said(int from, char *ret, size_t size);
/* "apptainer version 1.4.5-2": 1 and 4. */
bool apptainer_parse_version(const char *text, unsigned *major, unsigned *minor);

/* ---- looking at what was made (apptainer_look.c) ------------------------------------ */

/* Inode numbers of /proc/self/ns/... below `proc`: pid, mnt, ipc, uts, net. 0 or negative errno. */
int apptainer_namespaces(int proc, uint64_t ret[APPTAINER_NAMESPACES], struct fail *fail);
/* -EPROTO with the first that is the same. */
int apptainer_check_namespaces(const uint64_t outside[APPTAINER_NAMESPACES],
                               const uint64_t inside[APPTAINER_NAMESPACES], struct fail *fail);
/* Not the same, but below. */
bool apptainer_is_below(const char *path, const char *point);
/* One line of /proc/self/mountinfo: -EPROTO when it is none of `points` and none of apptainer's own. */
int apptainer_check_mount(const char *line, const char *points, struct fail *fail);

/* ---- both ends ----------------------------------------------------------------------- */

/* Where containers will be, each in a directory of its own; once, before any. `program`: the file of apptainer_main.c's. */
int apptainer_prepare(const char *directory, int program, struct fail *fail);
/* The way's build, in the process that becomes apptainer: comes back only when that failed. */
int apptainer_container_build(const struct container_plan *plan, struct container *ret, struct fail *fail);

#endif
