/*
 * program_file.h - the program that the evaluator "code" is given as a file of the agent's (eval.source): taken out of
 * a sandbox with all that the agent left, so that it is run in another, where nothing else of the agent's is.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_CODE_PROGRAM_FILE_H
#define SLUICE_WORKERS_EVALUATORS_CODE_PROGRAM_FILE_H

#include "workers/stages/sandbox/stage_sandbox.h"

enum { PROGRAM_MAX = 1 << 20 }; /* bytes */

enum program_file {
    PROGRAM_TAKEN, /* its text was appended */
    PROGRAM_LACKS, /* there is none, and `why` says so */
    PROGRAM_FAILED /* the job has ended */
};

/* In a fiber. */
enum program_file program_file_take(struct job *job, struct buffer *ret, char *why, size_t size);

#endif
