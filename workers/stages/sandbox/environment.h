/*
 * environment.h - who runs what a stage runs, where, and with which variables: what the task says, else what the image
 * says (images/config.h), else user 1000 in /workspace. A user that is named is looked up in /etc/passwd and /etc/group
 * as the layers and the image have them.
 *
 * HOME is /root for uid 0 and what /etc/passwd says for other users that were asked for, where no variable says
 * otherwise.
 */
#ifndef SLUICE_WORKERS_STAGES_SANDBOX_ENVIRONMENT_H
#define SLUICE_WORKERS_STAGES_SANDBOX_ENVIRONMENT_H

#include "common/base/fail.h"
#include "schemas/task/task.h"
#include "workers/images/config.h"
#include "workers/sandbox/sandbox.h"

struct environment {
    struct sandbox_user user;
    bool has_user;              /* false: the usual one */
    const char *workdir;        /* NULL: /workspace; borrowed from task or image */
    struct image_config values; /* the variables, merged */
};

/* What it is asked of; all borrowed. */
struct environment_sources {
    const struct image_config *image;
    const char *user, *workdir;                /* the task's; NULL: the image's */
    const struct task_variables *variables[2]; /* the latter over the former */
    const char *const *roots;                  /* directories that hold /etc/passwd, the uppermost first; "host" is / */
    size_t root_count;
};

/* -EINVAL: there is no such user, or the variables are too many: the task's fault. In a fiber. */
int environment_make(const struct environment_sources *sources, struct environment *ret, struct fail *fail);
void environment_finish(struct environment *environment);

#endif
