#include <stdio.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"

struct metrics_options {
    bool openmetrics;
};

static int run_metrics(const struct invocation *in)
{
    const struct metrics_options *options = in->options;
    const char *text;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    if (sluice_metrics(client, options->openmetrics, &text))
        return cli_failed(client);
    fputs(text, stdout);
    return EXITS_OK;
}

static const struct option options[] = {
    {"openmetrics", OPTION_FLAG, offsetof(struct metrics_options, openmetrics), NULL,
     "As OpenMetrics 1.0 instead of Prometheus text 0.0.4."},
};

const struct command command_metrics = {
    COMMAND_LINE("metrics"),
    .line.arguments = "",
    .line.brief = "Prints the service's metrics as Prometheus reads them",
    .line.doc = "All of them, with their labels: docs/metrics.md. They are of all clients together, so "
                "that it takes\n"
                "an admin's key.\n",
    .line.example = "sluice metrics\n"
                    "sluice metrics | grep sluice_rollouts_live\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct metrics_options),
    .run = run_metrics,
};
