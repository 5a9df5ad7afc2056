/* export.c - `sluice export`: a stream's trajectories as files, by a module of the Python package. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/programs/python.h"
#include "common/base/cleanup.h"

enum { NUMBER_SIZE = 32 };

static const char *const formats[] = {"parquet", "jsonl", "sft", "dpo"};

struct export_options {
    const char *output, *columns;
    uint64_t format, from, to, shard;
    struct texts filters;
    const char *min_reward;
    double margin;
};

struct numbers {
    char from[NUMBER_SIZE], to[NUMBER_SIZE], shard[NUMBER_SIZE], margin[NUMBER_SIZE];
};

/* --name TEXT; nothing where there is none. */
static bool add(struct python_call *call, const char *name, const char *text)
{
    return !text || (python_add(call, name) && python_add(call, text));
}

static void write_numbers(const struct export_options *options, struct numbers *ret)
{
    snprintf(ret->from, NUMBER_SIZE, "%llu", (unsigned long long)options->from);
    snprintf(ret->to, NUMBER_SIZE, "%llu", (unsigned long long)options->to);
    snprintf(ret->shard, NUMBER_SIZE, "%llu", (unsigned long long)options->shard);
    snprintf(ret->margin, NUMBER_SIZE, "%.17g", options->margin);
}

/* Rewards may be less than 0, which a REAL of the command line is not. */
static bool is_real(const char *text)
{
    char *end;
    const double number = strtod(text, &end);
    return *text && !*end && isfinite(number);
}

static int run_export(const struct invocation *in)
{
    const struct export_options *options = in->options;
    struct python_call call = {.module = "sluice.export"};
    char least[2 * NUMBER_SIZE];
    struct numbers numbers;
    if (!cli_is_name(in->command, "STREAM", in->arguments[0]))
        return EXITS_USAGE;
    if (options->from && options->to && options->to < options->from)
        return cli_usage(in->command, "--to comes before --from");
    if (!is_real(options->min_reward) || strlen(options->min_reward) >= NUMBER_SIZE)
        return cli_usage(in->command, "--min-reward wants a number, not '%s'", options->min_reward);
    snprintf(least, sizeof(least), "--min-reward=%s", options->min_reward); /* -1 is no option */
    write_numbers(options, &numbers);
    bool fits = python_add(&call, in->arguments[0]) && add(&call, "--output", options->output) &&
                add(&call, "--format", formats[options->format]) &&
                (!options->from || add(&call, "--from", numbers.from)) &&
                (!options->to || add(&call, "--to", numbers.to)) && add(&call, "--shard", numbers.shard) &&
                add(&call, "--margin", numbers.margin) && python_add(&call, least) &&
                add(&call, "--columns", options->columns) && add(&call, "--broker", in->broker) &&
                add(&call, "--key", in->key);
    for (size_t i = 0; i < options->filters.count && fits; i++)
        fits = add(&call, "--filter", options->filters.items[i]);
    if (fits && in->allow_plaintext)
        fits = python_add(&call, "--allow-plaintext");
    return fits ? python_exec(&call) : EXITS_USAGE;
}

static const struct option options[] = {
    {"output", OPTION_TEXT, offsetof(struct export_options, output), "PATH",
     "A directory, of a file for every so many numbers and a README.md; or one file, whose name ends with .parquet or "
     ".jsonl.",
     .required = true},
    {"format", OPTION_WORD, offsetof(struct export_options, format), "parquet|jsonl|sft|dpo",
     "parquet, jsonl: a row for each trajectory. sft: conversations of rollouts that ended ok. dpo: the best and the "
     "worst of each group.",
     .preset = 0},
    {"from", OPTION_NUMBER, offsetof(struct export_options, from), "N", "The first number.",
     .standard = "the oldest that is kept", .min = 1, .max = INT64_MAX},
    {"to", OPTION_NUMBER, offsetof(struct export_options, to), "N", "The last number.",
     .standard = "the last that there is", .min = 1, .max = INT64_MAX},
    {"columns", OPTION_TEXT, offsetof(struct export_options, columns), "NAME,NAME",
     "Of parquet and jsonl: only these columns.", .standard = "all"},
    {"filter", OPTION_LIST, offsetof(struct export_options, filters), "TEST",
     "Only trajectories of which this holds, such as outcome=ok, reward>=0.5 or metadata.split!=test; several must all "
     "hold.",
     .standard = "all"},
    {"min-reward", OPTION_TEXT, offsetof(struct export_options, min_reward), "X",
     "Of sft: with a reward of at least X.", .text = "1"},
    {"margin", OPTION_REAL, offsetof(struct export_options, margin), "X",
     "Of dpo: where the two rewards differ by at least X.", .real = 0},
    {"shard", OPTION_NUMBER, offsetof(struct export_options, shard), "N",
     "How many numbers of the stream a file of a directory is of.", .preset = 1000, .min = 1, .max = 1000000},
};

const struct command command_export = {
    COMMAND_LINE("export"),
    .line.arguments = "STREAM",
    .line.brief = "Writes a stream's trajectories to files: parquet, JSON lines, pairs for SFT and DPO",
    .line.doc =
        "Killed and started again it goes on, and the files come out the same; started later it goes on after\n"
        "the last number. Nothing is acknowledged. docs/export.md has the columns, and how datasets.load_dataset\n"
        "reads a directory. The work is done by the Python package; parquet needs pyarrow as well.\n",
    .line.example = "sluice export train --output out/train\n"
                    "sluice export train --format sft --min-reward 0.9 --output sft.jsonl\n"
                    "sluice export train --format dpo --filter metadata.split!=test --output out/pairs\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct export_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_export,
};
