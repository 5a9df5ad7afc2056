/*
 * fail.h - what the system refused: a negative errno and a sentence, wrapped on
 * the way up ("cannot start the sandbox: overlay: Invalid argument"). Functions
 * take a `struct fail *` last and return its code, so that a caller writes
 *     return fail_set(fail, -errno, "cannot open %s: %s", path, strerror(errno));
 * `fail` may be NULL where the caller does not want the words.
 */
#ifndef SLUICE_COMMON_BASE_FAIL_H
#define SLUICE_COMMON_BASE_FAIL_H

struct fail {
    int code;       /* negative errno, 0 when nothing failed */
    char text[512]; /* one line, no newline at the end */
};

/* All return the code. */
int fail_set(struct fail *fail, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
int fail_memory(struct fail *fail); /* -ENOMEM, "out of memory" */
/* Puts words and ": " in front of what is there; the code stays. */
int fail_wrap(struct fail *fail, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
