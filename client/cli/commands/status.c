#include "client/cli/print/status_print.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/connect.h"
#include "client/json/json.h"

struct status_options {
    uint64_t watch_ms;
    bool json;
};

static const struct {
    const char *health;
    enum exit_status status;
} healths[] = {{"degraded", EXITS_DEGRADED}, {"down", EXITS_DOWN}};

static int exit_of(const json_t *status)
{
    const char *health = json_string_value(json_object_get(status, "health"));
    for (size_t i = 0; health && i < ROWS(healths); i++)
        if (strcmp(healths[i].health, health) == 0)
            return healths[i].status;
    return EXITS_OK;
}

static int show(const struct status_options *options, struct sluice_client *client)
{
    const char *text;
    int failed = sluice_status(client, &text);
    if (failed)
        return cli_failed(client);
    json_t *status = json_loads(text, 0, NULL);
    int code = json_is_object(status) ? exit_of(status) : EXITS_FAILED;
    if (!json_is_object(status))
        cli_say("the broker's status is not a JSON object");
    else if (options->json)
        json_line(stdout, text);
    else
        status_print(client, status);
    json_decref(status);
    return code;
}

/* Until interrupted, or until nobody reads; a broker that is away may come back. */
static int watch(const struct status_options *options, struct sluice_client *client)
{
    bool paints = isatty(STDOUT_FILENO) && !options->json;
    const struct timespec pause = {(time_t)(options->watch_ms / 1000), (long)(options->watch_ms % 1000) * 1000000};
    for (int code = EXITS_OK;; nanosleep(&pause, NULL)) {
        if (paints)
            printf("\x1b[H\x1b[2J");
        code = show(options, client);
        if (!paints && !options->json)
            putchar('\n');
        if (fflush(stdout) != 0)
            return code;
    }
}

static int run_status(const struct invocation *in)
{
    const struct status_options *options = in->options;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    return options->watch_ms ? watch(options, client) : show(options, client);
}

static const struct option options[] = {
    {"watch", OPTION_DURATION, offsetof(struct status_options, watch_ms), "TIME",
     "Repeat every 2s, or every TIME, until interrupted.", .min = 100, .max = 86400000, .bare_ms = 2000},
    {"json", OPTION_FLAG, offsetof(struct status_options, json), NULL,
     "Print all of the broker's status as one JSON object (docs/operations.md)."},
};

const struct command command_status = {
    COMMAND_LINE("status"),
    .line.arguments = "",
    .line.brief = "Shows how the broker is: health, queues, workers, engines, streams, and what is missing",
    .line.doc = "The first line is its health, with the reasons. A line that begins with '!' says "
                "in words what\n"
                "is missing and what to do.\n"
                "\n"
                "Exit status, with --json too: 0 healthy; 4 degraded, work continues but something "
                "is lost, set\n"
                "aside or nearly full; 5 down, what is accepted cannot get on, such as when no "
                "worker lives; 1 no\n"
                "broker answers.\n",
    .line.example = "sluice status\n"
                    "sluice status --watch=5s\n"
                    "sluice status --json\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct status_options),
    .run = run_status,
};
