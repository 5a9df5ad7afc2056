/* shell_terminal.h - a terminal for one command. */
#ifndef SLUICE_WORKERS_TOOLS_BASH_SHELL_TERMINAL_H
#define SLUICE_WORKERS_TOOLS_BASH_SHELL_TERMINAL_H

#include "workers/tools/bash/shell_inside.h"

struct terminal {
    int master; /* -1: none */
    char path[32];
    struct loop *loop;
    struct loop_watch *watch;
    struct output *output;
    const struct shell_command *command;
};

/* What is written on it goes to `output` and the command's on_output. terminal_close it. */
int terminal_open(struct terminal *terminal, struct sandbox *sandbox, const struct shell_command *command,
                  struct output *output, struct fail *fail);
/* Says once more that the input has ended, to a program that reads single keys. */
void terminal_end_input(struct terminal *terminal);
/* Reads what is there now. */
void terminal_drain(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

#endif
