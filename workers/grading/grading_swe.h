/*
 * grading_swe.h - `sluice grade swe --eval-log`: what the tests of a change printed, judged as the evaluator swe does
 * (evaluators/swe/swe_verdict.h), without image, sandbox and service: by the log alone, as SWE-bench does, for there is
 * no witness of a run of others'. With a patch, what of it counts is asked first.
 *
 * The tests' output stands between SWE-bench's two marks; a log without either is all of it.
 */
#ifndef SLUICE_WORKERS_GRADING_GRADING_SWE_H
#define SLUICE_WORKERS_GRADING_GRADING_SWE_H

#include "workers/grading/grading.h"

/* False: *ret_why is a sentence about the option that is wrong. */
bool grading_swe_read(const struct grading_options *options, const char **ret_why);
/* Says on stderr what cannot be read. UNREAD also where there is no verdict. */
enum grading_status grading_swe(const struct grading_options *options, FILE *out);

#endif
