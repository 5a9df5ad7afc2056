/* shell_output.h - what a command writes to. */
#ifndef SLUICE_WORKERS_TOOLS_BASH_SHELL_OUTPUT_H
#define SLUICE_WORKERS_TOOLS_BASH_SHELL_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"

/*
 * bash opens the output by name. The file is made and held here, so that whatever a command makes of the
 * directory, of its mode or of the umask, its output is there. In it stands its own name: bash empties the file as
 * it opens it, and a command that was never begun is known by what is still in it.
 */
struct shell_output {
    int dir, file; /* the sandbox's outputs, borrowed; file: -1 before it is opened */
    char name[64]; /* of the command, and of its file */
    bool is_full;  /* there is no room for it, though what commands had left there is removed */
};

/* `dir` and `name` are set. -ENOEXEC, and others, as sandbox_outputs_code says. */
int shell_output_open(struct shell_output *output, struct fail *fail);
bool shell_output_is_begun(const struct shell_output *output);
uint64_t shell_output_size(const struct shell_output *output);
/* Also of what was not opened. The name goes too; background jobs that write to the file go on. */
void shell_output_close(struct shell_output *output);

#endif
