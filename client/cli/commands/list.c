/* list.c - `sluice list`: rollouts by what they are at, or how they ended. */
#include <jansson.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/print/list_print.h"
#include "client/cli/connect.h"

struct list_options {
    const char *stream, *group, *image, *engine;
    uint64_t stage, state, outcome, older_ms, limit;
    bool ended, groups, json;
};

static const char *const stage_words[] = {"init", "run", "eval"};
static const char *const state_words[] = {"queued", "leased", "delayed"};
static const char *const outcome_words[] = {"ok", "agent", "task", "infra", "cancelled"};

static const char *word_of(const char *const words[], uint64_t place)
{
    return place == OPTION_NOT_GIVEN ? NULL : words[place];
}

static void print(const json_t *answer, const struct list_options *options)
{
    const json_t *rollouts = json_object_get(answer, "rollouts");
    const long long matched = json_integer_value(json_object_get(answer, "matched"));
    const size_t listed = json_array_size(rollouts);
    if (options->json)
        list_print_json(rollouts, stdout);
    else if (!listed)
        printf("no rollout %s\n", options->ended ? "that has ended and is kept matches" : "that has not ended matches");
    else if (options->groups)
        list_print_groups(rollouts, options->ended, stdout);
    else
        list_print_rollouts(rollouts, options->ended, stdout);
    fflush(stdout);
    if ((size_t)matched > listed)
        cli_say("%zu of %lld are listed: narrow the search, or raise --limit (at most 1000)", listed, matched);
}

static int run_list(const struct invocation *in)
{
    struct list_options *options = in->options;
    options->ended |= options->outcome != OPTION_NOT_GIVEN;
    const struct sluice_filter filter = {.ended = options->ended,
                                         .stream = options->stream,
                                         .group = options->group,
                                         .stage = word_of(stage_words, options->stage),
                                         .state = word_of(state_words, options->state),
                                         .outcome = word_of(outcome_words, options->outcome),
                                         .image = options->image,
                                         .engine = options->engine,
                                         .age_ms = options->older_ms,
                                         .limit = (unsigned)options->limit};
    if (options->ended && !options->stream && !options->group)
        return cli_usage(in->command, "ended rollouts are listed by stream or group: add --stream NAME");
    if (options->ended && (filter.stage || filter.state))
        return cli_usage(in->command, "what has ended is in no stage and no state: leave --%s out",
                         filter.stage ? "stage" : "state");
    if ((options->stream && !cli_is_name(in->command, "--stream", options->stream)) ||
        (options->group && !cli_is_name(in->command, "--group", options->group)))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    const char *text;
    int failed = sluice_list(client, &filter, &text);
    if (failed)
        return cli_failed(client);
    json_t *answer = json_loads(text, 0, NULL);
    if (answer)
        print(answer, options);
    else
        cli_say("the broker's list is not a JSON object");
    json_decref(answer);
    return answer ? EXITS_OK : EXITS_FAILED;
}

static const struct option options[] = {
    {"stream", OPTION_TEXT, offsetof(struct list_options, stream), "NAME", "Only rollouts of this stream.",
     .standard = "all of yours"},
    {"group", OPTION_TEXT, offsetof(struct list_options, group), "NAME", "Only rollouts of this group.",
     .standard = "all"},
    {"ended", OPTION_FLAG, offsetof(struct list_options, ended), NULL,
     "Only rollouts of the stream or group that have ended and are kept, newest first."},
    {"outcome", OPTION_WORD, offsetof(struct list_options, outcome), "ok|agent|task|infra|cancelled",
     "Only rollouts that ended so; implies --ended.", .standard = "all", .preset = OPTION_NOT_GIVEN},
    {"stage", OPTION_WORD, offsetof(struct list_options, stage), "init|run|eval", "Only rollouts in this stage.",
     .standard = "all", .preset = OPTION_NOT_GIVEN},
    {"state", OPTION_WORD, offsetof(struct list_options, state), "queued|leased|delayed",
     "Only rollouts that are queued, running, or waiting for a retry.", .standard = "all", .preset = OPTION_NOT_GIVEN},
    {"image", OPTION_TEXT, offsetof(struct list_options, image), "PATH", "Only rollouts whose task names this image.",
     .standard = "all"},
    {"engine", OPTION_TEXT, offsetof(struct list_options, engine), "URL", "Only rollouts on this engine.",
     .standard = "all"},
    {"older", OPTION_DURATION, offsetof(struct list_options, older_ms), "TIME",
     "Only rollouts that ended, or entered their state, at least this long ago.", .standard = "all", .min = 0,
     .max = 31536000000},
    {"limit", OPTION_NUMBER, offsetof(struct list_options, limit), "N", "List at most this many.", .preset = 100,
     .min = 1, .max = 1000},
    {"groups", OPTION_FLAG, offsetof(struct list_options, groups), NULL,
     "Print one line per group of the rollouts listed."},
    {"json", OPTION_FLAG, offsetof(struct list_options, json), NULL, "Print one JSON object per rollout."},
};

const struct command command_list = {
    COMMAND_LINE("list"),
    .line.arguments = "",
    .line.brief = "Lists rollouts: where those are that have not ended, and how others ended",
    .line.doc = "Without --ended or --outcome: those that have not ended, each stream's oldest first. Of those that\n"
                "have, the newest 20,000 of a stream are looked at. `sluice show ROLLOUT` shows one, `sluice show\n"
                "GROUP` all of a group.\n",
    .line.example = "sluice list --stream train --state leased --older 10m\n"
                    "sluice list --stream train --outcome infra\n"
                    "sluice list --stream train --ended --groups\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct list_options),
    .run = run_list,
};
