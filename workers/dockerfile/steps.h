/* dockerfile/steps.h - the instructions of one stage, one after the other: what each does to files and to the
 * environment. */
#ifndef SLUICE_WORKERS_DOCKERFILE_STEPS_H
#define SLUICE_WORKERS_DOCKERFILE_STEPS_H

#include "workers/dockerfile/stages.h"

#ifdef __aarch64__
#define STEP_ARCHITECTURE "arm64"
#else
#define STEP_ARCHITECTURE "amd64"
#endif

/* Zero it but for what is borrowed. */
struct step_reading {
    char escape;
    const struct task_variables *args; /* the task's */
    const struct image_config *global; /* ARGs before the first FROM */
    struct build_stage *stage;         /* whose environment goes with it */
    struct image_config declared;      /* its ARGs */
    char **shell;                      /* of SHELL; NULL: /bin/sh -c */
    size_t shell_count;
    size_t *room; /* bytes that words of the whole Dockerfile may still come to */
    struct fail *fail;
};

int step_read(struct step_reading *reading, const struct dockerfile_instruction *one);
void step_reading_finish(struct step_reading *reading);
void stage_step_finish(struct stage_step *step);
/* What a flag of COPY says to copy from, as it stands there; NULL: nothing. */
const char *step_copy_from(const char *flag);

#endif
