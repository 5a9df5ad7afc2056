/* options.h - the command line of sluice-worker (options.def). */
#ifndef SLUICE_WORKERS_PROGRAMS_OPTIONS_H
#define SLUICE_WORKERS_PROGRAMS_OPTIONS_H

#include <stdio.h>

#include "workers/service/worker.h"

struct options {
    struct worker_plan plan; /* store and cache still as given; options_finish frees what it made */
    bool with_parent, doctor, json, help;
    const char *engine_check; /* a URL, or NULL */
    const char *sandbox; /* a tier's word, or "auto" */
    bool cgroup_off;     /* limits are watched, also where the kernel could hold them */
    const char *key_path;
    struct key key; /* plan.key points here, where there is one */
    const char *search_key_path;
    char *search_key; /* plan.search_key points here, where there is one */
    const char *images[IMAGE_LIST_MAX]; /* as given */
    size_t image_count;
    const char *data; /* as given */
    char *store, *cache;
    char *disks;       /* a directory of the cache for what sandboxes write, where they write to a disk */
    char *mount_point; /* an empty directory of the cache that every sandbox covers with its tmpfs */
};

/* 0, or -EINVAL with a sentence. The caller calls options_finish in either case. */
int options_parse(int argc, char **argv, struct options *ret, struct fail *fail);
void options_finish(struct options *options);
void options_print_help(FILE *out);

/* Makes store, cache and mount point where they are missing; their paths become absolute. What else the worker was told of
 * files is made its own then: no sandbox shows them (secrets.h), and they are no images. */
int options_make_directories(struct options *options, struct fail *fail);

#endif
