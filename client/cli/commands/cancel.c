#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "common/base/sanitize.h"

struct cancel_options {
    const char *stream;
    bool json;
};

static int print_json(uint64_t count, const char *none)
{
    printf("{\"stopped\": %llu%s%s}\n", (unsigned long long)count, none ? ", \"state\": " : "", none ? none : "");
    return EXITS_OK;
}

/* Nothing was stopped: has it ended, or did this come before its submit? */
static int say_none(struct sluice_client *client, const char *target, bool is_rollout, bool json)
{
    const struct sluice_trajectory *trajectory;
    const char *state;
    char rollout[160];
    snprintf(rollout, sizeof(rollout), "%s%s", target, is_rollout ? "" : "/0");
    int failed = sluice_get(client, rollout, &trajectory, &state);
    const bool has_ended = failed == 0 || failed == -ENODATA || failed == -EBADMSG;
    if (json)
        return print_json(0, failed == -ENOENT ? "\"unknown\"" : has_ended ? "\"ended\"" : "null");
    if (failed == -ENOENT)
        printf("nothing ran: no %s %s is known. The cancel is remembered for as long as the broker's "
               "--early-cancel says, an hour by default: should its submit still come, it ends "
               "cancelled\n",
               is_rollout ? "rollout" : "group", target);
    else if (has_ended)
        printf("nothing ran: %s has ended already\n", target);
    else
        sanitize_print(stdout, "nothing ran, and whether %s has ended cannot be said: %s\n", target,
                       sluice_error(client));
    return EXITS_OK;
}

static int run_cancel(const struct invocation *in)
{
    const struct cancel_options *options = in->options;
    const char *target = in->argument_count ? in->arguments[0] : NULL;
    bool is_rollout = target && strchr(target, '/');
    if (!target == !options->stream)
        return cli_usage(in->command, "say either ROLLOUT, GROUP or --stream NAME");
    if (is_rollout && !cli_is_rollout(in->command, target))
        return EXITS_USAGE;
    if (options->stream && !cli_is_name(in->command, "--stream", options->stream))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    uint64_t count = 0;
    int failed = sluice_cancel(client, is_rollout ? target : NULL, is_rollout ? NULL : target, options->stream, &count);
    if (failed)
        return cli_failed(client);
    if (!count && target)
        return say_none(client, target, is_rollout, options->json);
    if (options->json)
        return print_json(count, NULL);
    printf("%llu rollouts stopped\n", (unsigned long long)count);
    return EXITS_OK;
}

static const struct option options[] = {
    {"stream", OPTION_TEXT, offsetof(struct cancel_options, stream), "NAME",
     "Cancel every rollout of this stream that has not ended."},
    {"json", OPTION_FLAG, offsetof(struct cancel_options, json), NULL,
     "Print {\"stopped\": N}; with N 0 also whether it has \"ended\" or is \"unknown\", as \"state\"."},
};

const struct command command_cancel = {
    COMMAND_LINE("cancel"),
    .line.arguments = "ROLLOUT|GROUP",
    .line.brief = "Stops a rollout, a group or all of a stream",
    .line.doc = "Each ends in a trajectory with outcome 'cancelled' and no reward; its model call, "
                "its processes\n"
                "and its sandbox end at once. Cancelling twice is cancelling once, and a cancel "
                "that comes before\n"
                "its submit is remembered.\n",
    .line.example = "sluice cancel tasks-add-1f0c9b2a77/0\n"
                    "sluice cancel tasks-add-1f0c9b2a77\n"
                    "sluice cancel --stream train\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct cancel_options),
    .line.arguments_max = 1,
    .run = run_cancel,
};
