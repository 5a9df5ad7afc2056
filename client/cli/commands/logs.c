/* logs.c - `sluice logs`: what one rollout does, or did. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/print/live_print.h"
#include "client/cli/print/trajectory_events.h"
#include "client/cli/print/trajectory_print.h"
#include "common/base/sanitize.h"

enum { FIRST_MS = 3000, QUIET_MS = 500 };

struct logs_options {
    bool follow, json;
};

static void print_ended(const struct sluice_trajectory *t, bool json)
{
    if (json) {
        trajectory_events(t);
        trajectory_event_ended(t->rollout, t);
        return;
    }
    print_said(t);
    print_used(t, false);
    putchar('\n');
    print_end(t);
}

/* How it ended, where that is kept: all else was printed. */
static int print_how(struct sluice_client *client, const char *rollout, bool json)
{
    const struct sluice_trajectory *t = NULL;
    const char *state;
    const int failed = sluice_get(client, rollout, &t, &state);
    if (failed && failed != -ENODATA)
        return cli_failed(client);
    if (json) {
        trajectory_event_ended(rollout, t);
    } else if (t) {
        print_used(t, false);
        putchar('\n');
        print_end(t);
    } else {
        sanitize_print(stdout, "\n%s has ended, and its trajectory is no longer kept\n", rollout);
    }
    return EXITS_OK;
}

/* Until it has ended; without `follows`, until there is nothing more to hear. */
static int hear(struct sluice_client *client, const char *rollout, struct live_print *print, bool follows)
{
    const char *batch;
    bool has_part = false;
    int failed = sluice_watch(client, rollout);
    while (!failed && !print->is_ended) {
        failed = sluice_watch_next(client, follows ? -1 : has_part ? QUIET_MS : FIRST_MS, &batch);
        if (failed == -EAGAIN && !follows)
            return EXITS_OK;
        if (!failed && !live_print_batch(print, batch)) {
            cli_say("what was heard of %s cannot be read: it is no JSON, or there is no memory", rollout);
            return EXITS_FAILED;
        }
        has_part |= print->stage[0] != '\0';
    }
    return failed ? cli_failed(client) : print_how(client, rollout, print->json);
}

static int run_logs(const struct invocation *in)
{
    const struct logs_options *options = in->options;
    const char *rollout = in->arguments[0], *state;
    const struct sluice_trajectory *t;
    if (!cli_is_rollout(in->command, rollout))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    if (sluice_get(client, rollout, &t, &state))
        return cli_failed(client);
    if (t) {
        print_ended(t, options->json);
        return EXITS_OK;
    }
    struct live_print print = {.json = options->json, .streams = isatty(STDOUT_FILENO)};
    const int status = hear(client, rollout, &print, options->follow);
    live_print_finish(&print);
    return status;
}

static const struct option options[] = {
    {"follow", OPTION_FLAG, offsetof(struct logs_options, follow), NULL,
     "Go on until the rollout has ended, and say how it ended."},
    {"json", OPTION_FLAG, offsetof(struct logs_options, json), NULL,
     "Print one event a line, as JSON (docs/live.md), token ids among them."},
};

const struct command command_logs = {
    COMMAND_LINE("logs"),
    .line.arguments = "ROLLOUT",
    .line.brief = "Tells what a rollout says and does while it works, or did",
    .line.doc = "What is said by whom as it is said, tool calls with their output, where its seconds go, why traces "
                "start.\n"
                "On a terminal the model's text is printed as it is sampled. Of a rollout that has ended its\n"
                "trajectory is told. Looking costs the rollout nothing, and renews no lease (docs/live.md).\n",
    .line.example = "sluice logs tasks-add-1f0c9b2a77/0 --follow\n"
                    "sluice logs tasks-add-1f0c9b2a77/0 --follow --json > events.jsonl\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct logs_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_logs,
};
