/* options.def as a command line. */
#include "broker/simulate/program.h"

#include <stdlib.h>
#include <string.h>

#include "broker/core/state/sampler.h"
#include "broker/simulate/trainer/trainer.h"
#include "common/cmdline/cmdline.h"

static const struct {
    const char *name, *doc;
} quantities[] =
    {
#define QUANTITY(name, unit, least, most, doc) {#name, doc},
#include "broker/simulate/quantities.def"
#undef QUANTITY
},
  presets[] = {
#define PRESET(name, text, doc) {#name, doc "\n            " text},
#include "broker/simulate/presets.def"
#undef PRESET
};

static void print_tasks(FILE *out);

static const struct option rows[] = {
#define OPTION(...) OPTION_ROW(struct simulate_options, __VA_ARGS__)
#include "broker/simulate/options.def"
#undef OPTION
};

static const struct cmdline_status statuses[] = {
    {0, "it has simulated"},
    {SIMULATE_FAILED, "a file cannot be read, or memory ran out"},
    {SIMULATE_USAGE, "the command line is wrong"},
};

static const struct cmdline line = {
    .program = "sluice-simulate",
    .arguments = "",
    .brief = "Says what a fleet would do: rollouts an hour, the bottleneck, and what to add",
    .doc = "How busy each part is and how long jobs wait, too. It drives the broker's own "
           "scheduling with a made-up clock,\n"
           "so a thousand nodes take seconds. Needs no broker, no engine and no worker. "
           "docs/capacity.md tells of the\n"
           "model.\n",
    .example = "sluice simulate --engines 8 --tokens-per-second 4000 --nodes 16 --slots 64 --tasks swe\n"
               "sluice simulate --engines 64 --nodes 1000 --slots 100 --queued 1000000 --samples 1\n"
               "sluice simulate --tasks "
               "turns=8..30,prompt=2000,sampled=150..600,tool=0.2..5s,init=3s,eval=10s\n"
               "sluice simulate --tasks trajectories.jsonl --engines 2 --per-hour 500\n"
               "sluice simulate --tasks math --batch 64 --solved 10..90 --train 2m\n"
               "sluice simulate --tasks math --batch 64 --solved 0..20 --sampling rounds\n",
    .tables = {{.rows = rows, .count = ROWS(rows)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
    .more = print_tasks,
};

static void print_tasks(FILE *out)
{
    fprintf(out, "\nwhat the tasks are like: WHAT is a name\n");
    for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++)
        fprintf(out, "  %-8s  %s\n", presets[i].name, presets[i].doc);
    fprintf(out, "or KEY=RANGE,... of which sampled must be there:\n");
    for (size_t i = 0; i < sizeof(quantities) / sizeof(*quantities); i++)
        fprintf(out, "  %-8s  %s\n", quantities[i].name, quantities[i].doc);
    fprintf(out, "where a RANGE is N (always that), A..B (uniform), or ~A..B (lognormal: one in "
                 "twenty below A, one in\n"
                 "twenty above B), and seconds may have a unit (ms, s, m, h);\n"
                 "or a file that `sluice submit --wait --out` or `sluice watch --json` wrote: "
                 "turns, tokens and times are\n"
                 "drawn from those trajectories.\n");
}

/* "20..80,30..90" */
static bool read_solved(const char *text, struct sampling *ret)
{
    for (int end = 0; ret->solved_count < SOLVED_MAX; text += end + 1) {
        unsigned least, most;
        if (sscanf(text, "%u..%u%n", &least, &most, &end) != 2 || least > most || most > 100)
            return false;
        ret->solved[ret->solved_count++] = (struct solved){least / 100.0, most / 100.0};
        if (text[end] != ',')
            return !text[end];
    }
    return false;
}

bool simulate_sampling(const struct simulate_options *options, struct sampling *ret)
{
    *ret = (struct sampling){.groups = options->batch,
                             .way = (enum sampling_way)options->sampling,
                             .round = options->round ? options->round : options->batch,
                             .ahead = options->ahead,
                             .window = options->window,
                             .over_sample = options->over_sample,
                             .early = options->early,
                             .train_s = (double)options->train_ms / 1000};
    return read_solved(options->solved, ret);
}

/* What --queued is, where it is not said: of batches no more than a sampler holds. */
static uint64_t queued_of(const struct simulate_options *options, const struct sampling *sampling)
{
    const uint64_t enough = simulate_enough(options->nodes * options->slots, options->samples, sampling);
    const uint64_t most = SAMPLER_POOL_MAX * options->samples;
    return sampling->groups && enough > most ? most : enough;
}

/* What follows from others, and what must fit them. */
static int complete(struct simulate_options *ret)
{
    if (ret->init_nodes > ret->nodes || ret->eval_nodes > ret->nodes)
        return cmdline_wrong(&line, "--%s must be at most --nodes",
                             ret->init_nodes > ret->nodes ? "init-nodes" : "eval-nodes");
    ret->init_nodes = ret->init_nodes ? ret->init_nodes : ret->nodes;
    ret->eval_nodes = ret->eval_nodes ? ret->eval_nodes : ret->nodes;
    if (ret->nodes * ret->slots + ret->init_nodes * ret->init_slots + ret->eval_nodes * ret->eval_slots > 4000000)
        return cmdline_wrong(&line, "--slots: with these nodes all stages' are more than 4000000 together");
    struct sampling sampling;
    if (!simulate_sampling(ret, &sampling))
        return cmdline_wrong(&line,
                             "--solved wants two whole numbers of per cent, such as 20..80, or at most %d such "
                             "pairs with commas between, not '%s'",
                             SOLVED_MAX, ret->solved);
    if (trainer_is_by_hand(&sampling) && ret->per_hour)
        return cmdline_wrong(&line, "--per-hour: with --sampling %s it is the trainer who submits",
                             sampling_way_word(sampling.way));
    if (ret->batch && (sampling.window ? sampling.window : ret->batch) < ret->batch)
        return cmdline_wrong(&line, "--window: %llu groups have no room for a batch of %llu",
                             (unsigned long long)ret->window, (unsigned long long)ret->batch);
    if (ret->over_sample && ret->over_sample < 1000)
        return cmdline_wrong(&line, "--over-sample wants a number from 1000 on: thousandths");
    if (!ret->queued)
        ret->queued = queued_of(ret, &sampling);
    if (ret->batch && ret->queued / ret->samples > SAMPLER_POOL_MAX)
        return cmdline_wrong(&line,
                             "--queued: %llu rollouts are more groups than the %d that a sampler holds; say less, or "
                             "a smaller --batch",
                             (unsigned long long)ret->queued, SAMPLER_POOL_MAX);
    return -1;
}

int simulate_options_begin(int argc, char **argv, struct simulate_options *ret)
{
    struct cmdline_values values = {.into = {ret}};
    const int status = cmdline_begin(&line, argc, argv, &values);
    cmdline_finish(&values);
    return status < 0 ? complete(ret) : status;
}
