/*
 * checker_program.h - a checker that comes with the task, by testlib's convention, for problems of which many answers
 * are right: a program of eval.files that is run as
 *
 *     PROGRAM input output answer        (three files: the test's input, what the candidate gave, what is expected)
 *
 * and says by its exit status 0: right, 1: wrong, 2: wrong, its form is; 3 and all else: it is itself at fault. Its
 * words, on standard error or output, go with the test. One whose name ends with .py is run by the image's python3; an
 * exception that it does not catch is a fault of its own.
 *
 * It has a sandbox of its own, of the image, init's files and eval.files: nothing of the candidate's is in it but the
 * output, and nothing of the expected outputs is where the candidate runs.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_CODE_CHECKER_PROGRAM_H
#define SLUICE_WORKERS_EVALUATORS_CODE_CHECKER_PROGRAM_H

#include "workers/stages/sandbox/stage_sandbox.h"

struct checker_program {
    struct stage_sandbox stage;
    char *command; /* for bash */
};

enum checker_says { CHECKER_RIGHT, CHECKER_WRONG, CHECKER_AT_FAULT };

/* `program` is all zero; checker_program_close it whatever happened. Errors are those of stage_end_failed. */
int checker_program_open(struct checker_program *program, struct job *job, struct fail *fail);
/* One of enum checker_says, and its words, cut, in `why`; or negative errno of the sandbox's. */
int checker_program_ask(struct checker_program *program, const struct task *task, struct slice input,
                        struct slice output, struct slice answer, char *why, size_t why_size, struct fail *fail);
void checker_program_close(struct checker_program *program);

#endif
