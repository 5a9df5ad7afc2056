/* trace.c - `sluice trace`: where the time of rollouts went, for viewers of traces. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/trace/trace_read.h"
#include "common/base/cleanup.h"

struct trace_options {
    uint64_t from, format, patience_ms;
    const char *output, *collector;
    bool follow, group;
};

static int check(const struct invocation *in)
{
    const struct trace_options *options = in->options;
    const char *name = in->arguments[0];
    const bool is_rollout = strchr(name, '/');
    if (!(is_rollout ? cli_is_rollout(in->command, name) : cli_is_name(in->command, "STREAM", name)))
        return EXITS_USAGE;
    if (options->output && !*options->output)
        return cli_usage(in->command, "--output wants the path of a file, not ''");
    if (options->collector && options->output)
        return cli_usage(in->command, "--otlp sends, --output writes: say one of the two");
    if (options->collector && options->format == TRACE_PERFETTO)
        return cli_usage(in->command, "--otlp sends OTLP: leave --format perfetto out");
    if ((options->follow || options->from) && (is_rollout || options->group))
        return cli_usage(in->command, "--%s is of a stream", options->follow ? "follow" : "from");
    return EXITS_OK;
}

static int read_all(struct sluice_client *client, const struct trace_options *options, const char *name,
                    struct trace_sink *sink)
{
    bool is_stream = !options->group;
    if (strchr(name, '/'))
        return trace_read_rollout(client, name, sink);
    if (is_stream && !options->follow && !options->from && trace_is_stream(client, name, &is_stream))
        return EXITS_FAILED;
    if (is_stream)
        return trace_read_stream(client, name, options->from, sink);
    return trace_read_group(client, name, sink);
}

static int run_trace(const struct invocation *in)
{
    const struct trace_options *options = in->options;
    int status = check(in);
    if (status)
        return status;
    struct trace_sink sink = {.format = options->format == TRACE_OTLP ? TRACE_OTLP : TRACE_PERFETTO,
                              .path = options->output,
                              .collector = options->collector,
                              .is_live = options->follow};
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    sluice_set_patience(client, cli_patience(options->patience_ms));
    status = trace_sink_open(&sink);
    if (status == EXITS_OK)
        status = read_all(client, options, in->arguments[0], &sink);
    const int closed = trace_sink_close(&sink, status == EXITS_OK);
    return status == EXITS_OK ? closed : status;
}

static const struct option options[] = {
    {"from", OPTION_NUMBER, offsetof(struct trace_options, from), "N", "The stream's first number to read.",
     .standard = "the oldest that is kept", .min = 1, .max = INT64_MAX},
    {"output", OPTION_TEXT, offsetof(struct trace_options, output), "FILE",
     "Write to FILE, which has its name once it is whole.", .standard = "stdout"},
    {"format", OPTION_WORD, offsetof(struct trace_options, format), "perfetto|otlp",
     "perfetto: events for ui.perfetto.dev and chrome://tracing. otlp: a request of OTLP/HTTP in JSON for each "
     "rollout, "
     "one a line.",
     .standard = "perfetto", .preset = OPTION_NOT_GIVEN},
    {"otlp", OPTION_TEXT, offsetof(struct trace_options, collector), "URL",
     "Send to an OpenTelemetry collector, such as http://127.0.0.1:4318, instead of writing.", .standard = "none"},
    {"follow", OPTION_FLAG, offsetof(struct trace_options, follow), NULL,
     "Go on with the stream's trajectories as they end, until interrupted. A collector that is slow or gone then costs "
     "spans, which are counted, and never time."},
    {"group", OPTION_FLAG, offsetof(struct trace_options, group), NULL,
     "The name is a group's, also where a stream has it."},
    {"patience", OPTION_DURATION, offsetof(struct trace_options, patience_ms), "TIME",
     "Give up when a broker that had answered has been away for this long.", .preset = PATIENCE_PRESET_MS, .min = 0,
     .max = DURATION_FOREVER},
};

const struct command command_trace = {
    COMMAND_LINE("trace"),
    .line.arguments = "STREAM | GROUP | ROLLOUT",
    .line.brief = "Writes where the time of rollouts went, for Perfetto, Chrome or OpenTelemetry",
    .line.doc =
        "Of rollouts that have ended: queue, init, run and eval, in the run each turn with its engine call and\n"
        "tool calls. Durations are the trajectories'; where each began they do not say, so what follows each\n"
        "other stands one behind the other (docs/traces.md). Nothing is acknowledged; reading a stream counts\n"
        "as a trainer that is alive, for leases.\n",
    .line.example = "sluice trace train --output train.json      # open it in ui.perfetto.dev\n"
                    "sluice trace tasks-add-1f0c9b2a77/0 > one.json\n"
                    "sluice trace train --follow --otlp http://127.0.0.1:4318\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct trace_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_trace,
};
