/*
 * dockerfile/stages.h - what a Dockerfile asks for: of each stage that its target needs, what it stands on, the steps
 * that change files, each with the environment it runs in, and the environment that is left. Worked out from its text,
 * the task's arguments and what the base images say of themselves; no file is read or run. Refusals begin with the
 * line.
 *
 * A stage without USER is root's, as Docker has it. LABEL, EXPOSE, VOLUME, STOPSIGNAL, HEALTHCHECK, CMD, ENTRYPOINT and
 * MAINTAINER are read and change nothing here. COPY and ADD accept --chown, --link and --parents=false; owners are the
 * sandbox's user's.
 */
#ifndef SLUICE_WORKERS_DOCKERFILE_STAGES_H
#define SLUICE_WORKERS_DOCKERFILE_STAGES_H

#include "schemas/task/task.h"
#include "workers/dockerfile/parse.h"
#include "workers/images/config.h"

enum { STAGES_MAX = 64, STAGE_SOURCES_MAX = 256, STAGES_EXPANDED_MAX = 16 << 20, RUN_WORD_MAX = 128 * 1024 - 1 };

enum step_kind { STEP_RUN, STEP_COPY, STEP_ADD, STEP_WORKDIR };

struct stage_step {
    enum step_kind kind;
    unsigned line;
    struct image_config environment; /* with what ARG says, for RUN */
    char **argv;                     /* RUN: what is executed */
    size_t argv_count;
    char *script;   /* RUN: a heredoc that begins with #!; executed, in place of argv */
    char **sources; /* COPY, ADD: relative to the context, or to the root of `from` */
    size_t source_count;
    struct dockerfile_heredoc *files; /* COPY, ADD: what heredocs hold */
    size_t file_count;
    char *destination; /* COPY, ADD, WORKDIR: absolute; ends with "/" where it did */
    char *from;        /* an image by name; NULL: from_stage, or the context */
    int from_stage;    /* -1: none */
    unsigned mode;     /* --chmod; 0: as they are */
};

struct build_stage {
    char *name, *base; /* name: NULL where it has none */
    unsigned line;
    int base_stage; /* an earlier one; -1: the image `base` */
    bool is_needed;
    struct stage_step *steps;
    size_t step_count;
    struct image_config environment; /* what is left at its end */
};

struct build_stages {
    struct build_stage each[STAGES_MAX];
    size_t count, target;
};

/* What it is worked out from; all borrowed. */
struct build_sources {
    const struct task_variables *args;
    const char *target;    /* a stage by name or number; NULL: the last */
    const char *image;     /* in place of what the target's chain of stages stands on; NULL: what its FROM says */
    bool environment_only; /* of the target: what its steps copy from need not be there */
    /* What an image says of itself. Negative: why it is not to be had. */
    int (*find_base)(void *arg, const char *name, struct image_config *ret, struct fail *fail);
    void *arg;
};

/* -EINVAL: refused; else what find_base returned, or -ENOMEM. build_stages_finish *ret whatever it returned. */
int build_stages_make(const struct dockerfile *dockerfile, const struct build_sources *sources,
                      struct build_stages *ret, struct fail *fail);
void build_stages_finish(struct build_stages *stages);

#endif
