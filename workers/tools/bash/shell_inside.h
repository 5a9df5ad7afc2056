/*
 * shell_inside.h - the bash of a shell and what it says (shell_driver.h), and a terminal for one
 * command (shell_terminal.h); shell.c puts them together. Nobody else includes it.
 */
#ifndef SLUICE_WORKERS_TOOLS_BASH_SHELL_INSIDE_H
#define SLUICE_WORKERS_TOOLS_BASH_SHELL_INSIDE_H

#include <limits.h>

#include "workers/sandbox/output.h"
#include "workers/sandbox/sandbox.h"
#include "workers/tools/bash/shell.h"

#define SHELL_READY "ready" /* the name of a new shell's first answer */
enum { SHELL_STATUS_MAX = PATH_MAX + 128, SHELL_RETURN_MS = 500 /* after a kill, to come back */ };

struct shell {
    struct sandbox *sandbox;
    pid_t pid;  /* 0: none is running */
    int socket; /* the other end of the driver's; a socket cannot be opened through /proc */
    uint64_t count;
    char name[32]; /* of its files: "bash1", as its error messages begin */
    char cwd[PATH_MAX];
    char line[SHELL_STATUS_MAX]; /* what came of an answer's piece so far */
    size_t line_len, skipped;    /* skipped: bytes of that piece that did not fit */
    bool has_directory;          /* the answer's first piece has come, the second is to come */
};

#endif
