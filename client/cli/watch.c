#include <errno.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/print.h"

struct watch_options {
    uint64_t from, count;
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
    size_t all, sampled;
    print_reward(t, reward, sizeof(reward));
    print_duration(t->wait_ms + t->init_ms + t->run_ms + t->eval_ms, duration, sizeof(duration));
    count_tokens(t, &all, &sampled);
    printf("%llu  %s  %s  reward %s  %zu turns  %zu tokens, %zu sampled  %s",
           (unsigned long long)t->seq, t->rollout, t->outcome, reward, count_turns(t), all, sampled,
           duration);
    if (!t->trainable && *t->detail) {
        printf("  ");
        print_tame(stdout, t->detail);
    }
    putchar('\n');
}

static int run_watch(const struct invocation *in)
{
    const struct watch_options *options = in->options;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = sluice_subscribe(client, in->arguments[0], options->from);
    for (uint64_t seen = 0; !failed && (!options->count || seen < options->count);) {
        const struct sluice_trajectory *trajectory;
        failed = sluice_next(client, -1, &trajectory);
        if (!failed && options->json)
            json_trajectory(stdout, trajectory);
        else if (!failed)
            print_line(trajectory);
        else if (failed == -EBADMSG)
            cli_failed(client, failed);
        if (!failed || failed == -EBADMSG)
            seen++;
        if (fflush(stdout) != 0)
            return EXITS_FAILED; /* nobody reads any more */
        if (failed == -EINTR || failed == -EBADMSG)
            failed = 0;
    }
    return failed ? cli_failed(client, failed) : EXITS_OK;
}

static const struct option options[] = {
    {"from", OPTION_NUMBER, offsetof(struct watch_options, from), "N",
     "The first number wanted. Default: the oldest that is kept.", .min = 1, .max = INT64_MAX},
    {"count", OPTION_NUMBER, offsetof(struct watch_options, count), "N",
     "Stops after so many. Default: goes on until interrupted.", .min = 1, .max = INT64_MAX},
    {"json", OPTION_FLAG, offsetof(struct watch_options, json), NULL,
     "Prints whole trajectories, one JSON object a line."},
};

const struct command command_watch = {
    .name = "watch",
    .arguments = "STREAM",
    .brief = "Shows a stream's trajectories as they end",
    .doc = "A line is: number, rollout, outcome, reward, turns, tokens, time. Nothing is acknowledged, so\n"
           "watching takes nothing away from a trainer.\n",
    .example = "sluice watch train\n"
               "sluice watch train --from 100 --count 10 --json > some.jsonl\n",
    .options = options,
    .option_count = ROWS(options),
    .options_size = sizeof(struct watch_options),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run_watch,
};
