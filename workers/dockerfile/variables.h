/*
 * dockerfile/variables.h - ARG and ENV, and what words of a line come to with them. All words of a Dockerfile together
 * come to STAGES_EXPANDED_MAX bytes at most, as a few that name each other would come to any number.
 */
#ifndef SLUICE_WORKERS_DOCKERFILE_VARIABLES_H
#define SLUICE_WORKERS_DOCKERFILE_VARIABLES_H

#include "workers/dockerfile/steps.h"

/* Refused by line; the caller frees *ret. */
int variables_expand(const struct step_reading *reading, const struct dockerfile_instruction *one, const char *word,
                     char **ret);
/* What a heredoc holds: quotes are text. */
int variables_expand_heredoc(const struct step_reading *reading, const struct dockerfile_instruction *one,
                             const struct dockerfile_heredoc *heredoc, char **ret);
/* An ARG before the first FROM: the task's word, else its default; into `ret`. */
int variables_read_global(const struct dockerfile_instruction *one, char escape, const struct task_variables *args,
                          struct image_config *ret, struct fail *fail);
int variables_read_arg(struct step_reading *reading, const struct dockerfile_instruction *one);
int variables_read_env(struct step_reading *reading, const struct dockerfile_instruction *one);
/* ARGs are variables of a RUN, where no ENV has their name. */
int variables_add_args(const struct step_reading *reading, const struct dockerfile_instruction *one,
                       struct image_config *environment);

#endif
