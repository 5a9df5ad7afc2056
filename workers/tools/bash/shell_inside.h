/*
 * shell_inside.h - the bash of a shell and what it says (shell_driver.c), and a terminal for one
 * command (shell_terminal.c); shell.c puts them together. Nobody else includes it.
 */
#ifndef SLUICE_WORKERS_TOOLS_BASH_SHELL_INSIDE_H
#define SLUICE_WORKERS_TOOLS_BASH_SHELL_INSIDE_H

#include <limits.h>

#include "workers/sandbox/output.h"
#include "workers/sandbox/process.h"
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
int shell_await_news(struct shell *shell, const char *name, int64_t until_ms, const struct shell_tick *tick,
                     int *status, struct fail *fail);
/* After it fell silent: NEWS_EXIT, NEWS_BROKEN when it lives on all the same, or errno. */
int shell_await_exit(struct shell *shell, int *status, struct fail *fail);

/* ---- what a command writes to ---------------------------------------------------------- */

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
int terminal_open(struct terminal *terminal, struct sandbox *sandbox, const struct shell_command *command,
                  struct output *output, struct fail *fail);
/* Says once more that the input has ended, to a program that reads single keys. */
void terminal_end_input(struct terminal *terminal);
/* Reads what is there now. */
void terminal_drain(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

#endif
