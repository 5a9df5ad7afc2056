#include "client/cli/command.h"
#include "client/cli/connect.h"

struct backup_options {
    uint64_t patience_ms;
    bool json;
};

static int run_backup(const struct invocation *in)
{
    const struct backup_options *options = in->options;
    const char *name = in->arguments[0];
    if (!cli_is_name(in->command, "NAME", name))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    const char *json;
    uint64_t bytes;
    if (!client)
        return EXITS_FAILED;
    int failed = sluice_status(client, &json); /* is anybody there? */
    sluice_set_timeout(client, (int64_t)options->patience_ms);
    if (!failed)
        failed = sluice_backup(client, name, &bytes);
    if (failed)
        return cli_failed(client);
    if (options->json)
        printf("{\"file\": \"backups/%s.db\", \"bytes\": %llu}\n", name, (unsigned long long)bytes);
    else
        printf("backups/%s.db in the broker's data directory, %llu bytes\n", name, (unsigned long long)bytes);
    return EXITS_OK;
}

static const struct option options[] = {
    {"patience", OPTION_DURATION, offsetof(struct backup_options, patience_ms), "TIME",
     "How long to wait for the copy; after that it continues in the background.", .preset = PATIENCE_PRESET_MS,
     .min = 1000, .max = 86400000},
    {"json", OPTION_FLAG, offsetof(struct backup_options, json), NULL,
     "Print {\"file\": PATH, in the broker's data directory, \"bytes\": N}."},
};

const struct command command_backup = {
    COMMAND_LINE("backup"),
    .line.arguments = "NAME",
    .line.brief = "Copies the broker's ledger while it runs",
    .line.doc = "The copy is whole and as of one moment, and lies beside the ledger, on the broker's "
                "machine:\n"
                "backups/NAME.db in its data directory. To go back to it, stop the broker, put it in the\n"
                "ledger's place and start again (docs/operations.md); clients notice.\n",
    .line.example = "sluice backup monday\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct backup_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_backup,
};
