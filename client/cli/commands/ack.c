#include <errno.h>
#include <stdlib.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/json/json.h"

struct ack_options {
    bool json;
};

static int run_ack(const struct invocation *in)
{
    const struct ack_options *options = in->options;
    const char *text = in->arguments[1];
    char *end;
    errno = 0;
    unsigned long long seq = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || seq < 1)
        return cli_usage(in->command, "SEQ wants a number from 1 on, not '%s'", text);
    if (!cli_is_name(in->command, "STREAM", in->arguments[0]))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = sluice_ack(client, in->arguments[0], seq);
    if (failed)
        return cli_failed(client);
    if (options->json) {
        printf("{\"stream\": ");
        json_text(stdout, in->arguments[0]);
        printf(", \"seq\": %llu}\n", seq);
    } else
        printf("stream %s: the broker may forget up to number %llu\n", in->arguments[0], seq);
    return EXITS_OK;
}

static const struct option options[] = {
    {"json", OPTION_FLAG, offsetof(struct ack_options, json), NULL, "Print {\"stream\": NAME, \"seq\": SEQ}."},
};

const struct command command_ack = {
    COMMAND_LINE("ack"),
    .line.arguments = "STREAM SEQ",
    .line.brief = "Lets the broker forget a stream's trajectories up to a number",
    .line.doc = "What is acknowledged is no longer kept and cannot be read again, by anybody. A "
                "trainer does\n"
                "this once they are in a checkpoint; by hand it makes room where nobody does.\n",
    .line.example = "sluice ack train 4711\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct ack_options),
    .line.arguments_min = 2,
    .line.arguments_max = 2,
    .run = run_ack,
};
