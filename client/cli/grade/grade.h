/*
 * grade.h - `sluice grade --task`: what an agent left, or a task's own solution, judged by the task's evaluator in a
 * service of this command's own (own_service.h). Files, each of which includes only those before it: grade_left.h (what
 * was left, as an oracle's solution), grade_jobs.h (what is graded), grade_rows.h and grade_read.h (out of which
 * files), grade_print.h (verdicts), grade_run.h (the service at work).
 */
#ifndef SLUICE_CLIENT_CLI_GRADE_GRADE_H
#define SLUICE_CLIENT_CLI_GRADE_GRADE_H

#include "client/cli/command.h"

enum grade_status {
    GRADE_FULL = 0,
    GRADE_LESS = 1,
    GRADE_USAGE = EXITS_USAGE,
    GRADE_NO_VERDICT = 3 /* of something: no reward, a row or file that cannot be read, a service that did not start */
};

struct grade_options {
    const char *task, *text, *rows, *data, *log, *sandbox;
    struct texts ids, files, engines, handlers, images, image_names, task_dirs, grants;
    bool solution, nothing, json;
    double full_reward;
};

#endif
