/* shell_world.h - shells in tests: opened, given commands, and what they answer. */
#ifndef SLUICE_TESTS_WORKERS_TOOLS_SHELL_WORLD_H
#define SLUICE_TESTS_WORKERS_TOOLS_SHELL_WORLD_H

#include "tests/workers/sandbox/sandbox_fixture.h"

#include <signal.h>

#include "workers/tools/bash/shell.h"

static inline struct shell *open_shell(struct sandbox *sandbox)
{
    struct shell *shell = NULL;
    struct fail fail = {0};
    if (shell_open(sandbox, &shell, &fail) < 0)
        fail_msg("shell_open: %s", fail.text);
    return shell;
}

static inline struct sandbox_output run(struct shell *shell, const char *command, int64_t timeout_ms, size_t output_max)
{
    struct sandbox_output output;
    struct fail fail = {0};
    if (shell_run(shell, command, timeout_ms, output_max, &output, &fail) < 0)
        fail_msg("%s: %s", command, fail.text);
    assert_int_equal(strlen(output.text) <= output.len, 1);
    return output;
}

static inline void expect(struct shell *shell, const char *command, int status, const char *text)
{
    struct sandbox_output output = run(shell, command, COMMAND_MS, 1 << 20);
    if (output.status != status || strcmp(output.text, text) != 0)
        fail_msg("%s: %d, not %d: %s", command, output.status, status, output.text);
    free(output.text);
}

#endif
