/*
 * grading.h - `sluice-grade`: judges texts as the evaluators math, choice and exact do (evaluators/answers/grade.h),
 * without a service. One line for each verdict: a sentence, or a JSON object {"right", "answer", "why"}; of a
 * row that is none, {"error"}.
 */
#ifndef SLUICE_WORKERS_GRADING_GRADING_H
#define SLUICE_WORKERS_GRADING_GRADING_H

#include <stdio.h>

#include "common/cmdline/option.h"
#include "workers/evaluators/answers/grade.h"

enum grading_status {
    GRADING_RIGHT = 0,
    GRADING_WRONG = 1,
    GRADING_USAGE = 2,
    GRADING_UNREAD = 3 /* a row that is none, or a file that cannot be read */
};

enum { GRADING_LINE_MAX = 16 << 20 }; /* bytes of a row */

struct grading_options {
#define OPTION OPTION_FIELD
#include "workers/grading/options.def"
#undef OPTION
};

/* What the words of `options` say; false: *ret_why is a sentence about the one that is wrong. */
bool grading_read(const struct grading_options *options, const char *kind, struct grade_options *ret,
                  const char **ret_why);
enum grading_status grading_run(const struct grading_options *options, const struct grade_options *how, FILE *out);

#endif
