#include <string.h>

#include "client/cli/command.h"

struct cancel_options {
    const char *stream;
};

static int run_cancel(const struct invocation *in)
{
    const struct cancel_options *options = in->options;
    const char *target = in->argument_count ? in->arguments[0] : NULL;
    bool is_rollout = target && strchr(target, '/');
    if (!target == !options->stream)
        return cli_usage(in->command, "say either ROLLOUT, GROUP or --stream NAME");
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    uint64_t count = 0;
    int failed = sluice_cancel(client, is_rollout ? target : NULL, is_rollout ? NULL : target,
                               options->stream, &count);
    if (failed)
        return cli_failed(client, failed);
    printf("%llu rollouts stopped\n", (unsigned long long)count);
    return EXITS_OK;
}

static const struct option options[] = {
    {"stream", OPTION_TEXT, offsetof(struct cancel_options, stream), "NAME",
     "Every rollout of this stream that has not ended."},
};

const struct command command_cancel = {
    .name = "cancel",
    .arguments = "ROLLOUT|GROUP",
    .brief = "Stops a rollout, a group or all of a stream",
    .doc = "Each ends in a trajectory with outcome 'cancelled' and no reward.\n",
    .example = "sluice cancel tasks-add-1f0c9b2a77/0\n"
               "sluice cancel tasks-add-1f0c9b2a77\n"
               "sluice cancel --stream train\n",
    .options = options,
    .option_count = ROWS(options),
    .options_size = sizeof(struct cancel_options),
    .arguments_max = 1,
    .run = run_cancel,
};
