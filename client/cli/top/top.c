/* top.c - `sluice top`: the service as it is, again and again: a screen in a terminal, else a line each time. */
#include <time.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/top/plain.h"
#include "client/cli/top/source.h"
#include "client/cli/top/tty.h"
#include "client/cli/top/top_loop.h"
#include "common/base/cleanup.h"

struct top_options {
    uint64_t interval_ms, count;
    bool plain;
};

static void print_line(const struct model *model)
{
    char clock[16];
    AUTO_BUFFER line = {0};
    const time_t now = time(NULL);
    struct tm local;
    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
    plain_line(model, clock, &line);
    printf("%.*s\n", (int)line.len, line.data ? (const char *)line.data : "");
}

/* A line an interval, until so many are written or nobody reads them. */
static int run_plain(struct sluice_client *client, const struct top_options *options)
{
    const struct timespec pause = {(time_t)(options->interval_ms / 1000),
                                   (long)(options->interval_ms % 1000) * 1000000};
    struct model model = {0};
    bool is_read = true, skips_metrics = false;
    for (uint64_t n = 0; is_read; nanosleep(&pause, NULL)) {
        source_ask(client, &skips_metrics, &model);
        print_line(&model);
        is_read = fflush(stdout) == 0;
        if (options->count && ++n == options->count)
            break;
    }
    const bool is_away = *model.away;
    model_finish(&model);
    return is_away ? EXITS_FAILED : EXITS_OK;
}

static int run_top(const struct invocation *in)
{
    const struct top_options *options = in->options;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    if (options->plain || options->count || !tty_is_there())
        return run_plain(client, options);
    return top_loop(client, (int64_t)options->interval_ms);
}

static const struct option options[] = {
    {"interval", OPTION_DURATION, offsetof(struct top_options, interval_ms), "TIME", "Ask the broker this often.",
     .preset = 2000, .min = 100, .max = 86400000},
    {"count", OPTION_NUMBER, offsetof(struct top_options, count), "N",
     "Print N lines, one an interval, and end: with exit status 1 if the broker did not answer the last time.",
     .standard = "until interrupted", .min = 1, .max = INT64_MAX},
    {"plain", OPTION_FLAG, offsetof(struct top_options, plain), NULL,
     "Print lines in a terminal, too: as where stdout is none, or TERM is dumb."},
};

const struct command command_top = {
    COMMAND_LINE("top"),
    .line.arguments = "",
    .line.brief = "Shows the service live in a terminal: health, stages, rates, rollouts, workers, engines",
    .line.doc = "Keys: Tab changes the panel, Enter shows all of a row, s sorts, f filters, p pauses, ? shows all\n"
                "keys, q quits. Health, and what work waits for, stand at the top in words; live rollouts stand in\n"
                "the order of how long they are where they are, each with what it waits for. Up to 500 are listed.\n"
                "NO_COLOR turns colours off. While the broker is away that is said, and it comes back by itself.\n",
    .line.example = "sluice top\n"
                    "sluice top --interval 1s --count 60 > minute.txt\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct top_options),
    .run = run_top,
};
