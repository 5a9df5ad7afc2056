/*
 * command.h - the `sluice` command's commands, as tables (common/cmdline): from one row come its parsing, its --help
 * and its part of docs/cli.md; main.c lists them. A command is a file of commands/, or a folder: submit/, session/,
 * grade/, up/.
 */
#ifndef SLUICE_CLIENT_CLI_COMMAND_H
#define SLUICE_CLIENT_CLI_COMMAND_H

#include "client/sluice.h"
#include "common/cmdline/cmdline.h"

#define USUAL_BROKER "tcp://127.0.0.1:5750" /* the client library's, where none is named */

enum exit_status {
    EXITS_OK = 0,
    EXITS_FAILED = 1,
    EXITS_USAGE = CMDLINE_WRONG,
    EXITS_UNTRAINABLE = 3, /* or another verdict that could not be told */
    EXITS_DEGRADED = 4,
    EXITS_DOWN = 5,
    EXITS_DISK_FULL = 75, /* as the broker exits */
    EXITS_DAMAGED = 76
};

struct invocation {
    const struct command *command;
    const char *broker, *key; /* --broker and --key, or NULL */
    bool allow_plaintext;
    void *options;    /* the command's struct */
    char **arguments; /* what is no option; of a verb, what follows it, then NULL */
    size_t argument_count;
};

struct command {
    struct cmdline line;  /* begins with COMMAND_LINE */
    const char *old_name; /* is taken, too; NULL: none */
    size_t options_size;  /* of the struct that its options are read into */
    bool passes_on;       /* everything after the name goes to a program of its own, --help included */
    int (*run)(const struct invocation *in); /* NULL where there are verbs */
};

/* The options that every command has; read beside its own. */
enum { COMMON_OPTIONS = 3 };
extern const struct option common_options[COMMON_OPTIONS];

#define COMMAND_LINE(name)                                                                                             \
    .line.program = "sluice", .line.command = name, .line.tables[1] = {.rows = common_options, .count = COMMON_OPTIONS}

extern const struct command command_up, command_broker, command_worker, command_submit, command_watch, command_show,
    command_logs, command_list, command_status, command_cancel, command_engine, command_ack, command_drain,
    command_policy, command_backup, command_keys, command_doctor, command_image, command_verify, command_grade,
    command_simulate, command_task, command_sampler, command_harness, command_session, command_gateway, command_top,
    command_metrics, command_trace, command_export;

/* "10m" as what sluice_set_patience wants. */
static inline int64_t cli_patience(uint64_t ms) { return ms > INT64_MAX - 1 ? -1 : (int64_t)ms; }
#define PATIENCE_PRESET_MS 600000

static inline void cli_close(struct sluice_client **client) { sluice_close(client); }
#define AUTO_CLIENT __attribute__((cleanup(cli_close))) struct sluice_client

#endif
