/*
 * shell_inside.h - the bash of a shell and what it says (shell_driver.c), and a terminal for one
 * command (shell_terminal.c); shell.c puts them together. Nobody else includes it.
 */
#ifndef SLUICE_WORKERS_TOOLS_SHELL_INSIDE_H
#define SLUICE_WORKERS_TOOLS_SHELL_INSIDE_H

#include <limits.h>

#include "workers/sandbox/output.h"
#include "workers/sandbox/process.h"
#include "workers/tools/shell.h"

enum { SHELL_STATUS_MAX = PATH_MAX + 128, SHELL_RETURN_MS = 500 /* after a kill, to come back */ };

struct shell {
    struct sandbox *sandbox;
    pid_t pid;  /* 0: none is running */
    int socket; /* the other end of the driver's; a socket cannot be opened through /proc */
    uint64_t count;
    char name[32]; /* of its files: "bash1", as its error messages begin */
    char cwd[PATH_MAX];
    char line[SHELL_STATUS_MAX]; /* the status as far as it came */
    size_t line_len, strays;     /* lines that were not about the command under way */
};

/* ---- the driver ----------------------------------------------------------------------- */

int shell_start(struct shell *shell, struct fail *fail);
void shell_disconnect(struct shell *shell);
/* The order to run what stands in its file, as `name`, on a terminal (NULL: none). False: it does
 * not listen. */
bool shell_order(const struct shell *shell, const char *name, const char *terminal);

enum news { NEWS_NONE, NEWS_STATUS, NEWS_EXIT, NEWS_BROKEN };

/* Called every SHELL_TICK_MS while a command runs. */
struct shell_tick {
    void (*call)(void *arg);
    void *arg;
};
enum { SHELL_TICK_MS = 100 };

/* What became of the command `name`: NEWS_NONE when it still runs at until_ms, or errno. `tick`
 * may be NULL. */
int shell_await_news(struct shell *shell, const char *name, int64_t until_ms,
                     const struct shell_tick *tick, int *status, struct fail *fail);
/* After it fell silent: NEWS_EXIT, NEWS_BROKEN when it lives on all the same, or errno. */
int shell_await_exit(struct shell *shell, int *status, struct fail *fail);

/* ---- a terminal ----------------------------------------------------------------------- */

struct terminal {
    int master; /* -1: none */
    char path[32];
    struct loop *loop;
    struct loop_watch *watch;
    struct output *output;
    const struct shell_command *command;
};

/* What is written on it goes to `output` and the command's on_output. terminal_close it. */
int terminal_open(struct terminal *terminal, struct sandbox *sandbox,
                  const struct shell_command *command, struct output *output, struct fail *fail);
/* Says once more that the input has ended, to a program that reads single keys. */
void terminal_end_input(struct terminal *terminal);
/* Reads what is there now. */
void terminal_drain(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

#endif
