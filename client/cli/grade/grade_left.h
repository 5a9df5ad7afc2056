/*
 * grade_left.h - what an agent left behind: files and last words, its task's own solution, or nothing. A task is made
 * one whose agent leaves just that: the oracle, with it as the solution, which no evaluator is shown; or `none`.
 */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_LEFT_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_LEFT_H

#include <jansson.h>
#include <stdbool.h>

#include "client/cli/grade/grade.h"
#include "common/base/slice.h"

/* Directories that files are taken from, by real paths; they are the workers' --task-dir. Zero it but works_in. */
struct grade_dirs {
    char *each[TEXTS_MAX];
    size_t count;
    const char *works_in, *data; /* where the service has its directory, and --data or NULL; borrowed */
};
/* Unless it lies in one that is there already. -errno: it cannot be read; -E2BIG: too many; -EINVAL: no worker may. */
int grade_dirs_add(struct grade_dirs *dirs, const char *path, struct fail *fail);
void grade_dirs_finish(struct grade_dirs *dirs);

enum grade_source { GRADE_GIVEN, GRADE_SOLUTION, GRADE_NOTHING };

struct grade_left {
    enum grade_source source;
    /* given: directories and files, each [PATH=]FILE; the last words, no data: none. All borrowed. */
    const char *files[TEXTS_MAX];
    size_t file_count;
    struct slice text;
};

/* The task as it is submitted, the caller's. NULL: `fail` says what of it cannot be. */
char *grade_left_task(const char *task_json, const struct grade_left *left, struct grade_dirs *dirs, struct fail *fail);

#endif
