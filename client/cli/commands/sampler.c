/* sampler.c - `sluice sampler`: samplers of streams (docs/sampler.md). */
#include <jansson.h>
#include <time.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "common/base/clock.h"
#include "common/base/sanitize.h"

struct sampler_options {
    const char *trainer;
    uint64_t groups, filter, staleness, window, ahead, early, surplus, replace_max;
    uint64_t batch, wait_ms;
    double over_sample;
    bool cancel, json;
};

enum { LOOK_MS = 200 };

/* 0 where it was not said, of those of which that is the default. */
static uint64_t or_zero(uint64_t said) { return said == OPTION_NOT_GIVEN ? 0 : said; }

/* ---- what they answer -------------------------------------------------------------------- */

static void print_counts(const json_t *account)
{
    const char *name, *glue = "  ";
    json_t *count;
    json_object_foreach((json_t *)account, name, count)
    {
        if (!json_integer_value(count))
            continue;
        printf("%s%s %lld", glue, name, (long long)json_integer_value(count));
        glue = ", ";
    }
    printf("%s\n", *glue == ',' ? "" : "  nothing");
}

static long long number_of(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "?";
}

static int print_state(const struct sampler_options *options, const struct sluice_sampler_state *state)
{
    if (options->json) {
        printf("%s\n", state->json);
        return EXITS_OK;
    }
    json_t *all = json_loads(state->json, 0, NULL);
    sanitize_print(stdout,
                   "batch %llu; submitted %llu: %lld held, %lld at work, %lld ready; %.1f %% are kept; trainer %s\n",
                   (unsigned long long)state->batch, (unsigned long long)state->submitted, number_of(all, "held"),
                   number_of(all, "live"), number_of(all, "ready"),
                   100 * json_number_value(json_object_get(all, "acceptance")), text_of(all, "trainer"));
    printf("since the last batch:");
    print_counts(json_object_get(all, "account"));
    printf("ever:");
    print_counts(json_object_get(all, "total"));
    sanitize_print(stdout, "%s\n", text_of(all, "why"));
    json_decref(all);
    return EXITS_OK;
}

static int print_batch(const struct sampler_options *options, const char *json)
{
    if (options->json) {
        printf("%s\n", json);
        return EXITS_OK;
    }
    json_t *all = json_loads(json, 0, NULL), *group;
    size_t i;
    sanitize_print(stdout, "batch %lld of %s:\n", number_of(all, "batch"), text_of(all, "stream"));
    json_array_foreach(json_object_get(all, "groups"), i, group)
        sanitize_print(stdout, "  %s: mean %g of %lld of %lld rollouts, %lld tokens\n", text_of(group, "group"),
                       json_number_value(json_object_get(group, "mean")), number_of(group, "scored"),
                       number_of(group, "samples"), number_of(group, "tokens"));
    printf("since the batch before:");
    print_counts(json_object_get(all, "account"));
    json_decref(all);
    return EXITS_OK;
}

/* ---- the verbs ------------------------------------------------------------------------------ */

static int open_sampler(struct sluice_client *client, const struct sampler_options *options, const char *stream)
{
    static const char *const filters[] = {"mixed", "none"}, *const surpluses[] = {"carry", "cancel"};
    struct sluice_sampler_state state;
    const struct sluice_sampler sampler = {.stream = stream,
                                           .trainer = options->trainer,
                                           .groups = options->groups,
                                           .filter = filters[options->filter],
                                           .surplus = surpluses[options->surplus],
                                           .window = or_zero(options->window),
                                           .over_sample = (uint64_t)(options->over_sample * 1000 + 0.5),
                                           .early = options->early,
                                           .has_staleness = options->staleness != OPTION_NOT_GIVEN,
                                           .staleness = options->staleness,
                                           .has_ahead = options->ahead != OPTION_NOT_GIVEN,
                                           .ahead = options->ahead,
                                           .has_replace_max = options->replace_max != OPTION_NOT_GIVEN,
                                           .replace_max = options->replace_max};
    int failed = sluice_sampler_open(client, &sampler, &state);
    return failed ? cli_failed(client) : print_state(options, &state);
}

static int show_state(struct sluice_client *client, const struct sampler_options *options, const char *stream)
{
    struct sluice_sampler_state state;
    int failed = sluice_sampler_get(client, stream, &state);
    return failed ? cli_failed(client) : print_state(options, &state);
}

/*
 * Asks until it is full or the time is over, as one request waits for half a client's timeout at most; a broker whose
 * pool is empty answers at once.
 */
static int await_batch(struct sluice_client *client, const struct sampler_options *options, const char *stream,
                       uint64_t batch, const char **json, const char **why)
{
    const int64_t start_ms = clock_ms();
    for (;;) {
        const int64_t asked_ms = clock_ms();
        const uint64_t gone_ms = (uint64_t)(asked_ms - start_ms);
        const uint64_t left_ms = gone_ms < options->wait_ms ? options->wait_ms - gone_ms : 0;
        const int failed = sluice_sampler_next(client, stream, options->trainer, batch, left_ms, json, why);
        if (failed || *json || left_ms == 0)
            return failed;
        if (clock_ms() - asked_ms < LOOK_MS)
            nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
    }
}

/* The current batch is told again where nobody was told it: it was made after the last one who waited had gone. */
static uint64_t batch_to_tell(const struct sluice_sampler_state *state)
{
    json_t *all = json_loads(state->json, 0, NULL);
    const bool is_new = state->batch > 0 && json_is_false(json_object_get(all, "told"));
    json_decref(all);
    return state->batch + !is_new;
}

static int next_batch(struct sluice_client *client, const struct sampler_options *options, const char *stream)
{
    const char *json, *why;
    const bool is_said = options->batch != OPTION_NOT_GIVEN;
    struct sluice_sampler_state state;
    int failed = is_said ? 0 : sluice_sampler_get(client, stream, &state);
    const uint64_t batch = is_said ? options->batch : failed ? 0 : batch_to_tell(&state);
    if (!failed)
        failed = await_batch(client, options, stream, batch, &json, &why);
    if (failed)
        return cli_failed(client);
    if (json)
        return print_batch(options, json);
    cli_say("batch %llu is not full: %s", (unsigned long long)batch, why);
    return EXITS_FAILED;
}

static int close_sampler(struct sluice_client *client, const struct sampler_options *options, const char *stream)
{
    uint64_t count = 0;
    int failed = sluice_sampler_close(client, stream, options->cancel, &count);
    if (failed)
        return cli_failed(client);
    printf(options->json ? "{\"cancelled\": %llu}\n" : "closed; rollouts cancelled: %llu\n", (unsigned long long)count);
    return EXITS_OK;
}

static int for_stream(const struct invocation *in,
                      int (*act)(struct sluice_client *client, const struct sampler_options *options,
                                 const char *stream))
{
    if (!cli_is_name(in->command, "STREAM", in->arguments[0]))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    return client ? act(client, in->options, in->arguments[0]) : EXITS_FAILED;
}

static int run_open(const struct invocation *in)
{
    const struct sampler_options *options = in->options;
    if (options->groups == OPTION_NOT_GIVEN)
        return cli_usage(in->command, "open wants --groups N, how many groups a batch has");
    return for_stream(in, open_sampler);
}

static int run_next(const struct invocation *in) { return for_stream(in, next_batch); }

static int run_state(const struct invocation *in) { return for_stream(in, show_state); }

static int run_close(const struct invocation *in) { return for_stream(in, close_sampler); }

static const struct cmdline_verb verbs[] = {
    {"open", "STREAM", run_open},
    {"next", "STREAM", run_next},
    {"state", "STREAM", run_state},
    {"close", "STREAM", run_close},
};

#define PLACE(field) offsetof(struct sampler_options, field)

static const struct option options[] = {
    {"groups", OPTION_NUMBER, PLACE(groups), "N", "Groups of a batch.", .preset = OPTION_NOT_GIVEN, .min = 1,
     .max = 4096, .standard = "it must be said", .of = "open"},
    {"trainer", OPTION_TEXT, PLACE(trainer), "NAME", "Who samples: one at a time, the one who opened it last.",
     .text = "cli", .of = "open next"},
    {"filter", OPTION_WORD, PLACE(filter), "mixed|none",
     "mixed keeps a group only if its rollouts' raw rewards are not all equal; none keeps whatever has rewards.",
     .of = "open"},
    {"staleness", OPTION_NUMBER, PLACE(staleness), "N",
     "Versions that the oldest turn of a group may be behind the newest.", .preset = OPTION_NOT_GIVEN, .max = 1000000,
     .standard = "any", .of = "open"},
    {"window", OPTION_NUMBER, PLACE(window), "N", "Most groups at work or ready.", .preset = OPTION_NOT_GIVEN, .min = 1,
     .max = 65536, .standard = "8 times --groups", .of = "open"},
    {"ahead", OPTION_NUMBER, PLACE(ahead), "N", "Batches made beyond the one asked for.", .preset = OPTION_NOT_GIVEN,
     .max = 16, .standard = "1; 0 with --surplus cancel", .of = "open"},
    {"over-sample", OPTION_REAL, PLACE(over_sample), "X", "Groups released for each missing one, such as 1.5.",
     .min = 1, .max = 100, .standard = "by the share that is kept of late", .of = "open"},
    {"early", OPTION_NUMBER, PLACE(early), "N",
     "When so many rollouts of a group have one reward, the rest goes last until they differ; 0: never.", .max = 1023,
     .of = "open"},
    {"surplus", OPTION_WORD, PLACE(surplus), "carry|cancel",
     "Groups still at work when a batch is full count for the next, or are cancelled.", .of = "open"},
    {"replace-max", OPTION_NUMBER, PLACE(replace_max), "N",
     "Rollouts of a group that are begun again instead of ending infra.", .preset = OPTION_NOT_GIVEN, .max = 1024,
     .standard = "as many as the group has", .of = "open"},
    {"batch", OPTION_NUMBER, PLACE(batch), "K", "The current batch again, or the one after it.",
     .preset = OPTION_NOT_GIVEN, .min = 1, .max = UINT32_MAX,
     .standard = "the one after the current one; that one where nobody was told it", .of = "next"},
    {"wait", OPTION_DURATION, PLACE(wait_ms), "TIME", "How long to wait for it to be full.", .preset = 5000,
     .max = DURATION_FOREVER, .of = "next"},
    {"cancel", OPTION_FLAG, PLACE(cancel), NULL, "Groups at work are cancelled, too.", .of = "close"},
    {"json", OPTION_FLAG, PLACE(json), NULL, "Print the broker's JSON object instead of text (docs/sampler.md)."},
};

const struct command command_sampler = {
    COMMAND_LINE("sampler"),
    .old_name = "sample",
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief = "Has the broker make batches of a stream's groups, such as DAPO's dynamic sampling",
    .line.doc =
        "`open` attaches a rule to a stream: groups submitted to it are held, released as the rule has it, kept\n"
        "or dropped by their rewards, and told in batches. `next` tells the next batch, or exits with 1 and says\n"
        "why it is not full; the batch before is done with then. `close` cancels what is held.\n",
    .line.example = "sluice sampler open train --groups 64 --staleness 1\n"
                    "sluice submit tasks.jsonl --stream train --samples 8\n"
                    "sluice sampler next train\n"
                    "sluice sampler state train\n"
                    "sluice sampler close train\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct sampler_options),
};
