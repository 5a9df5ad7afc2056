/*
 * command.h - the `sluice` command's commands, as tables: from one row come its parsing, its
 * --help and its part of docs/cli.md. One command is one file; main.c lists them.
 *
 * Options are parsed into a struct of the command's own, by offset: a FLAG is a bool, a TEXT a
 * const char * (NULL when not given), a NUMBER a uint64_t, a DURATION a uint64_t of milliseconds
 * (duration.h), a LIST a struct texts. A DURATION may be asked for by its name alone: then it is
 * `bare_ms`, and a value is given as --name=VALUE only.
 */
#ifndef SLUICE_CLIENT_CLI_COMMAND_H
#define SLUICE_CLIENT_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/sluice.h"

enum exit_status {
    EXITS_OK = 0,
    EXITS_FAILED = 1,
    EXITS_USAGE = 2,
    EXITS_UNTRAINABLE = 3,
    EXITS_DEGRADED = 4,
    EXITS_DOWN = 5,
    EXITS_DISK_FULL = 75, /* as the broker exits */
    EXITS_DAMAGED = 76
};

enum { TEXTS_MAX = 64 };
struct texts {
    const char *items[TEXTS_MAX];
    size_t count;
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_DURATION, OPTION_LIST };
#define OPTION_NOT_GIVEN UINT64_MAX /* as preset: zero means something else */

struct option {
    const char *name;  /* without "--" */
    enum option_kind kind;
    size_t offset;
    const char *value; /* how --help names it; NULL for a FLAG */
    const char *doc;
    uint64_t preset, min, max; /* NUMBER, DURATION */
    uint64_t bare_ms;
    bool required;
};

struct invocation {
    const struct command *command;
    const char *broker, *key; /* --broker and --key, or NULL */
    bool allow_plaintext;
    void *options;           /* the command's struct */
    char **arguments;        /* what is no option */
    size_t argument_count;
};

struct command {
    const char *name;
    const char *arguments; /* as --help shows them, "" for none */
    const char *brief;     /* one line, without a full stop */
    const char *doc;       /* what else a reader needs, lines of at most 90 columns */
    const char *example;   /* one or more lines of shell */
    const struct option *options;
    size_t option_count, options_size;
    size_t arguments_min, arguments_max;
    bool passes_on; /* everything after the name goes to a program of its own, --help included */
    int (*run)(const struct invocation *in);
};

extern const struct command *const commands[];
extern const size_t command_count;
extern const struct command command_up, command_broker, command_worker, command_submit,
    command_watch, command_show, command_status, command_cancel, command_engine, command_ack,
    command_drain, command_policy, command_backup, command_keys, command_doctor,
    command_image, command_verify, command_simulate;

/* The options that every command has; parsed beside its own. */
extern const struct option common_options[];
extern const size_t common_option_count;

/* help.c */
void help_overview(FILE *out);
void help_command(const struct command *command, FILE *out);
void help_markdown(FILE *out);

/*
 * options.c: reads argv[0..argc) into *ret. EXITS_OK, or EXITS_USAGE with a sentence said; *help
 * is true, and nothing else counts, if --help is there. invocation_finish frees what it made.
 */
int options_parse(const struct command *command, int argc, char **argv, struct invocation *ret,
                  bool *help);
void invocation_finish(struct invocation *in);

/* connect.c */
struct sluice_client *cli_connect(const struct invocation *in); /* NULL after saying why */
/* Says the client's sentence, and what to do when no broker answers; returns EXITS_FAILED. */
int cli_failed(const struct sluice_client *client, int code);
/* "sluice: ..." on stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with a hint to --help; returns EXITS_USAGE. */
int cli_usage(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "10m" as what sluice_set_patience wants. */
static inline int64_t cli_patience(uint64_t ms) { return ms > INT64_MAX - 1 ? -1 : (int64_t)ms; }
#define PATIENCE_PRESET_MS 600000

static inline void cli_close(struct sluice_client **client) { sluice_close(client); }
#define AUTO_CLIENT __attribute__((cleanup(cli_close))) struct sluice_client

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

#endif
