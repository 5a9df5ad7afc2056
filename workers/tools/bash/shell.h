/*
 * shell.h - the bash tool: one bash per sandbox that keeps its directory, variables,
 * functions and background jobs from command to command. About 0.3 ms a command.
 * Commands and outputs pass through files in a private tmpfs directory of the sandbox,
 * the status through a pipe of its own: nothing in the output can be mistaken for it.
 */
#ifndef SLUICE_WORKERS_TOOLS_BASH_SHELL_H
#define SLUICE_WORKERS_TOOLS_BASH_SHELL_H

#include "common/base/slice.h"
#include "workers/sandbox/sandbox.h"

struct shell;

/* The sandbox must outlive the shell. -ENOEXEC, here and below: there is no bash that starts and
 * does what a bash does. */
int shell_open(struct sandbox *sandbox, struct shell **ret, struct fail *fail);
void shell_close(struct shell **shell); /* NULL-safe */

/* Kills it and all it runs, but not what other tools have started, and starts anew in /workspace. */
int shell_restart(struct shell *shell, struct fail *fail);

struct shell_command {
    const char *text; /* any bash text */
    int64_t timeout_ms;
    size_t output_max;
    /* On a terminal of its own, of 200 by 50, without echo; both streams are one, and its input
     * has ended. For programs that ask for one. */
    bool tty;
    /* Told what it writes while it still runs, ten times a second or, on a terminal, at once; of
     * much that comes at a time, the end. May be NULL; must not await. */
    void (*on_output)(void *arg, struct slice bytes);
    void *on_output_arg;
};

/*
 * Runs one command. After timeout_ms what it started is killed, and if that does not end it, the
 * jobs of earlier commands; other tools' processes go on. A shell that does not come back even so is
 * replaced by a new one in the same directory, and ret->text says so. Also after `exit`; where no
 * new one starts, ret->text says that. Result as sandbox_command; 0 or negative errno when the
 * sandbox failed.
 */
int shell_run_as(struct shell *shell, const struct shell_command *command, struct sandbox_output *ret,
                 struct fail *fail);
/* The same without a terminal and without telling. */
int shell_run(struct shell *shell, const char *command, int64_t timeout_ms, size_t output_max,
              struct sandbox_output *ret, struct fail *fail);

#endif
