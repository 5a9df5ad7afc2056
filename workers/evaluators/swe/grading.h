/*
 * grading.h - whether tests resolve a task, by SWE-bench's rules: each of fail_to_pass PASSED or XFAIL; each of
 * pass_to_pass so, or SKIPPED; a test that is not there is a failure. fail_only: it is one only where the log says
 * FAILED. A name that the data set has cut within its parameters (more [ than ]) stands for the tests that begin so, if
 * they agree. Where there is a witness, it must say of each test what the log says. With `expected`, the tests are
 * exactly those, with those statuses.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_GRADING_H
#define SLUICE_WORKERS_EVALUATORS_SWE_GRADING_H

#include "schemas/task/task.h"
#include "schemas/trajectory/verdict.h"
#include "workers/evaluators/swe/test_log.h"

struct swe_grade {
    size_t fail_to_pass, fail_to_pass_good; /* how many, and of these as they must be */
    size_t pass_to_pass, pass_to_pass_good;
    bool is_resolved;
    char first[512]; /* the first test that is not as it must be, and how it is; "" where all are */
};

/* Sorts both logs. `witness` may be NULL. Tests go into the verdict. */
void swe_grade(const struct task_swe *swe, struct test_log *log, struct test_log *witness, struct verdict *verdict,
               struct swe_grade *ret);

#endif
