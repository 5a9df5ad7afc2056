/* command.h - one command in a sandbox, from its start to its end. */
#ifndef SLUICE_WORKERS_SANDBOX_COMMAND_H
#define SLUICE_WORKERS_SANDBOX_COMMAND_H

#include "workers/sandbox/sandbox.h"

int sandbox_command(struct sandbox *sandbox, const char *command, int64_t timeout_ms, size_t output_max,
                    struct sandbox_output *ret, struct fail *fail);
/* The same, and the end of what it wrote to its standard error, which is in the output, too, as it came. */
struct sandbox_errors {
    size_t len;
    char text[8192 + 1]; /* NUL-terminated */
};
int sandbox_command_apart(struct sandbox *sandbox, const char *command, int64_t timeout_ms, size_t output_max,
                          struct sandbox_output *ret, struct sandbox_errors *ret_errors, struct fail *fail);

#endif
