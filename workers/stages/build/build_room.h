/* build_room.h - a build at work, what its steps share: sandboxes to work in, and how it is refused. */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_ROOM_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_ROOM_H

#include "workers/dockerfile/stages.h"
#include "workers/stages/build/build_context.h"
#include "workers/stages/build/build_store.h"
#include "workers/stages/sandbox/parents.h"
#include "workers/stages/sandbox/stage_sandbox.h"

struct built_stage {
    struct parents layers;
    char key[DIGEST_SIZE]; /* of all that they were made of */
};

struct build {
    struct job *job;
    struct task_base of; /* the task's, or its evaluator's */
    struct build_store store;
    struct build_context context;
    struct build_stages stages;
    struct built_stage built[STAGES_MAX]; /* those that are needed, in their order */
    int64_t until_ms;
    char refusal[1600]; /* the last failure is the task's fault, and this says it in whole; "": it is not */
    struct fail fail;
};

/* "the Dockerfile, line N: ..."; -EINVAL. */
int build_refuse(struct build *build, const struct stage_step *step, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A sandbox on what `from` calls an image, and these layers (NULL: none). `room` is zero; stage_sandbox_close it. */
int build_open_room(struct build *build, const char *base, const struct parents *layers,
                    const struct image_config *environment, struct stage_sandbox *room);
/* A key of what `name` stands for today. */
int build_base_key(struct build *build, const char *name, char ret[DIGEST_SIZE]);

#endif
