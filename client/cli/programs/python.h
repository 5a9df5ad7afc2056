/*
 * python.h - the modules of the Python package that commands run: `$SLUICE_PYTHON -m MODULE`, else python3's.
 * They need the package (docs/install.md); where it is not there, that is said.
 */
#ifndef SLUICE_CLIENT_CLI_PROGRAMS_PYTHON_H
#define SLUICE_CLIENT_CLI_PROGRAMS_PYTHON_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { PYTHON_ARGUMENTS_MAX = 480 };

/* Arguments behind -m MODULE; borrowed. All zero at first. */
struct python_call {
    const char *module;
    const char *arguments[PYTHON_ARGUMENTS_MAX];
    size_t count;
    pid_t pid; /* of python_open */
};

/* False, with a sentence said, where there are too many. */
bool python_add(struct python_call *call, const char *argument);
/* Becomes it; returns an exit status, with a sentence said, only when it cannot. */
int python_exec(const struct python_call *call);
/* Starts it; what it prints is read from the stream, which the caller closes before python_end. NULL with a sentence
 * said. */
FILE *python_open(struct python_call *call);
/* Awaits its end. False where it did not end with 0; what it said of that is on stderr. */
bool python_end(struct python_call *call);

#endif
