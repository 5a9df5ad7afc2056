/*
 * eval_script.h - what bash is given to do: take the agent's patch, apply it, run the tests. Pure: a task in, text out.
 * Git is asked not to run hooks or a file system monitor, and trusts the repository whoever owns it.
 *
 * The two marks between which the tests print hold a nonce; behind the second stands the exit status of the tests.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_EVAL_SCRIPT_H
#define SLUICE_WORKERS_EVALUATORS_SWE_EVAL_SCRIPT_H

#include "workers/evaluators/swe/patch.h"

enum { NONCE_SIZE = 33 }; /* hexadecimal digits and a NUL */

/* Exit statuses of ours. */
enum {
    SCRIPT_NO_REPOSITORY = 90, /* no git repository with a commit at eval.swe.repository */
    SCRIPT_NO_BASE = 91,       /* base_commit is not in it */
    SCRIPT_NOT_APPLIED = 92,   /* the agent's patch */
    SCRIPT_NO_TESTS = 93,      /* the test patch does not apply */
    SCRIPT_NO_PATCH = 94       /* git could not write one */
};

/* Looks for the repository and the base. */
void script_check(const struct task_swe *swe, struct buffer *out);
/* Writes what the working tree has beside HEAD to `path`, at most `max` bytes. */
void script_take_patch(const struct task_swe *swe, const char *path, size_t max, struct buffer *out);
/* Applies the patch in the file, whose new files are `made`; git apply first, and at last patch(1). */
void script_apply(const struct task_swe *swe, const char *path, const struct paths *made, struct buffer *out);
/* Runs the tests; `test_patch` is the file with the task's, `tests` its files; plugins: what is before PYTHONPATH, or
 * NULL. */
void script_run(const struct task_swe *swe, const char *test_patch, const struct paths *tests, const char *plugins,
                const char nonce[static NONCE_SIZE], struct buffer *out);

/* What a log says of the run. */
struct script_log {
    struct slice tests;  /* what was printed between the marks; nothing where one is missing */
    size_t begins, ends; /* how often the marks were printed */
    int exit_status;     /* of the tests; -1: unknown */
};
/* The first number in the text, of which four digits are read; -1: there is none. */
int script_read_number(struct slice text);
/* nonce "": of a log of others', whose marks have none. */
void script_read_log(const struct task_swe *swe, struct slice log, const char nonce[static NONCE_SIZE],
                     struct script_log *ret);

#endif
