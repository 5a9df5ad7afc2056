/* options.h - the command line of sluice-worker (options.def). */
#ifndef SLUICE_WORKERS_PROGRAMS_OPTIONS_H
#define SLUICE_WORKERS_PROGRAMS_OPTIONS_H

#include "workers/service/worker.h"

/* Exit statuses beside 0 and that of a wrong command line; options.c says what they mean. */
enum { END_NOT_WELL = 1, END_NO_DIRECTORY = 3, END_NO_SPAWNER = 4, END_NO_SOCKET = 5 };

enum { CGROUP_AUTO, CGROUP_OFF }; /* plan.given.cgroup, as its row has them */

struct options {
    struct worker_plan plan; /* strings are of argv, of the environment, or of below */
    struct key key;          /* plan.key points here, where there is one */
    char *search_key;        /* plan.search_key points here, where there is one */
    char *store, *cache;
    char *disks;       /* a directory of the cache for what sandboxes write, where they write to a disk */
    char *mount_point; /* an empty directory of the cache that every sandbox covers with its tmpfs */
};

/* -1 to go on, else the exit status to end with, after what was to be said. The caller calls options_finish in either
 * case. */
int options_begin(int argc, char **argv, struct options *ret);
void options_finish(struct options *options);

/* Makes store, cache and mount point where they are missing; their paths become absolute. What else the worker was told
 * of files is made its own then: no sandbox shows them (masked_paths.h), and they are no images. */
int options_make_directories(struct options *options, struct fail *fail);

#endif
