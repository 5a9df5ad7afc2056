#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/json/json.h"
#include "client/cli/print/print.h"
#include "common/base/sanitize.h"

struct watch_options {
    const char *cursor;
    uint64_t from, count, timeout_ms, patience_ms;
    bool json;
};

static size_t count_turns(const struct sluice_trajectory *t)
{
    size_t turns = 0;
    for (size_t i = 0; i < t->trace_count; i++)
        for (size_t k = 0; k < t->traces[i].turn_count; k++)
            turns += strcmp(t->traces[i].turns[k].role, "assistant") == 0;
    return turns;
}

static void print_line(const struct sluice_trajectory *t)
{
    char reward[32], duration[32];
    const size_t turns = count_turns(t);
    size_t all, sampled;
    print_reward(t, reward, sizeof(reward));
    print_duration(t->wait_ms + t->init_ms + t->run_ms + t->eval_ms, duration, sizeof(duration));
    count_tokens(t, &all, &sampled);
    const char *detail = t->trainable ? "" : t->detail;
    const size_t first_line = strcspn(detail, "\n");
    sanitize_print(stdout, "%llu  %s  %s  reward %s  %zu turn%s  %zu tokens, %zu sampled  %s%s%.*s%s\n",
                   (unsigned long long)t->seq, t->rollout, t->outcome, reward, turns, turns == 1 ? "" : "s", all,
                   sampled, duration, *detail ? "  " : "", (int)first_line, detail, detail[first_line] ? " ..." : "");
}

/* What it has read is on stdout; then the position moves. False when that cannot be, or was said. */
static bool finish_line(struct sluice_client *client)
{
    if (fflush(stdout) != 0)
        return false; /* nobody reads any more */
    int failed = sluice_cursor_save(client);
    if (failed)
        cli_failed(client);
    return !failed;
}

static int fail_watch(struct sluice_client *client, const struct watch_options *options, const char *stream, int failed)
{
    cli_failed(client);
    if (failed == -ENODATA || failed == -ESTALE)
        cli_say("to go on%s%s: sluice watch %s --from %llu", options->cursor ? ", remove " : "",
                options->cursor ? options->cursor : "", stream, (unsigned long long)sluice_stream_first(client));
    return EXITS_FAILED;
}

static int watch(struct sluice_client *client, const struct watch_options *options, const char *stream)
{
    int64_t timeout_ms = options->timeout_ms == DURATION_FOREVER ? -1 : (int64_t)options->timeout_ms;
    int failed = sluice_follow(client, stream, options->from, options->cursor);
    if (!failed && *sluice_warning(client))
        cli_say("warning: %s", sluice_warning(client));
    for (uint64_t seen = 0; !failed && (!options->count || seen < options->count);) {
        const struct sluice_trajectory *trajectory;
        failed = sluice_next(client, timeout_ms, &trajectory);
        if (failed == -EAGAIN)
            return EXITS_OK;
        if (failed == -EBADMSG)
            cli_failed(client);
        else if (!failed && options->json)
            json_trajectory(stdout, trajectory);
        else if (!failed)
            print_line(trajectory);
        seen += !failed || failed == -EBADMSG;
        if (failed == -EINTR || failed == -EBADMSG)
            failed = 0;
        if (!failed && !finish_line(client))
            return EXITS_FAILED;
    }
    return failed ? fail_watch(client, options, stream, failed) : EXITS_OK;
}

static int run_watch(const struct invocation *in)
{
    const struct watch_options *options = in->options;
    if (!cli_is_name(in->command, "STREAM", in->arguments[0]))
        return EXITS_USAGE;
    if (options->cursor && !*options->cursor)
        return cli_usage(in->command, "--cursor wants the path of a file, not ''");
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    sluice_set_patience(client, cli_patience(options->patience_ms));
    return watch(client, options, in->arguments[0]);
}

static const struct option options[] = {
    {"from", OPTION_NUMBER, offsetof(struct watch_options, from), "N", "The first number to show.",
     .standard = "the oldest that is kept", .min = 1, .max = INT64_MAX},
    {"count", OPTION_NUMBER, offsetof(struct watch_options, count), "N", "Stop after this many trajectories.",
     .standard = "until interrupted", .min = 1, .max = INT64_MAX},
    {"timeout", OPTION_DURATION, offsetof(struct watch_options, timeout_ms), "TIME",
     "Stop, with exit status 0, after this long without a trajectory.", .preset = DURATION_FOREVER, .min = 0,
     .max = DURATION_FOREVER},
    {"cursor", OPTION_TEXT, offsetof(struct watch_options, cursor), "FILE",
     "Store the position in FILE, and resume from it if the file exists."},
    {"patience", OPTION_DURATION, offsetof(struct watch_options, patience_ms), "TIME",
     "Give up, with exit status 1, when a broker that had answered has been away for this long. At the start the "
     "command waits 4s for the broker.",
     .preset = PATIENCE_PRESET_MS, .min = 0, .max = DURATION_FOREVER},
    {"json", OPTION_FLAG, offsetof(struct watch_options, json), NULL,
     "Print whole trajectories, one JSON object a line."},
};

const struct command command_watch = {
    COMMAND_LINE("watch"),
    .line.arguments = "STREAM",
    .line.brief = "Shows a stream's trajectories as they end",
    .line.doc = "A line is: number, rollout, outcome, reward, turns, tokens, time. Nothing is "
                "acknowledged, so\n"
                "watching takes nothing away from a trainer; but with the key of the stream's "
                "owner, or where no\n"
                "key is asked for, it counts as a trainer that is alive, for leases.\n"
                "\n"
                "Where the file of --cursor is there, it decides where reading begins, and --from "
                "counts for nothing.\n"
                "The file of --cursor moves once a line is written: killed at any moment and "
                "started again, at\n"
                "most one line comes twice and none is left out.\n",
    .line.example = "sluice watch train\n"
                    "sluice watch train --json --cursor train.cursor >> train.jsonl\n"
                    "sluice watch train --from 100 --count 10 --json > some.jsonl\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct watch_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_watch,
};
