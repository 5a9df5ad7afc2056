/*
 * build_context.h - what COPY and ADD copy from: the task's build.context as it was at one moment, or its build.files,
 * in a directory of the cache (source.h has the rules), without what its .dockerignore names. Blocking, but for opening
 * and closing it.
 */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_CONTEXT_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_CONTEXT_H

#include <stdatomic.h>

#include "common/digest/digest.h"
#include "workers/jobs/job.h"
#include "workers/layers/dir.h"

/* Zero it first; build_context_close it whatever happened. */
struct build_context {
    struct layer_dir dir;
    int root; /* -1: the task has none */
};

/* In a fiber. -EINVAL: the task is at fault. */
int build_context_open(const struct job *job, const struct task_build *build, struct build_context *ret,
                       struct fail *fail);
void build_context_close(struct build_context *context);

/* Adds what lies at `path` below `root`, all of it, by names, types, permission bits and contents.
 * 0 or negative errno. */
int build_content_add(struct digest *digest, int root, const char *path, const atomic_bool *stop);

#endif
