/* options.def as a parser and as --help. */
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/simulate/program.h"

enum option_kind { OPTION_NUMBER, OPTION_TEXT, OPTION_FLAG };

static const struct row {
    enum option_kind kind;
    const char *word, *argument, *doc, *text;
    size_t offset;
    uint64_t preset, least, most;
} rows[] = {
#define NUMBER(name, word, argument, preset, least, most, doc)                                     \
    {OPTION_NUMBER, word, argument, doc, NULL, offsetof(struct simulate_options, name), preset,    \
     least, most},
#define TEXT(name, word, argument, preset, doc)                                                    \
    {OPTION_TEXT, word, argument, doc, preset, offsetof(struct simulate_options, name), 0, 0, 0},
#define FLAG(name, word, doc)                                                                      \
    {OPTION_FLAG, word, NULL, doc, NULL, offsetof(struct simulate_options, name), 0, 0, 0},
#include "broker/simulate/options.def"
#undef NUMBER
#undef TEXT
#undef FLAG
};
enum { ROW_COUNT = sizeof(rows) / sizeof(*rows) };

static const struct {
    const char *name, *doc;
} quantities[] = {
#define QUANTITY(name, unit, least, most, doc) {#name, doc},
#include "broker/simulate/quantities.def"
#undef QUANTITY
}, presets[] = {
#define PRESET(name, text, doc) {#name, doc "\n            " text},
#include "broker/simulate/presets.def"
#undef PRESET
};

/* ---- help ----------------------------------------------------------------------------------- */

static void print_rows(void)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &rows[i];
        printf("  --%s%s%s\n      %s", row->word, row->argument ? " " : "",
               row->argument ? row->argument : "", row->doc);
        if (row->preset)
            printf(" [%llu]", (unsigned long long)row->preset);
        else if (row->text)
            printf(" [%s]", row->text);
        putchar('\n');
    }
}

static void print_tasks(void)
{
    printf("\nWHAT is a name:\n");
    for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++)
        printf("  %-8s  %s\n", presets[i].name, presets[i].doc);
    printf("or KEY=RANGE,... of which sampled must be there:\n");
    for (size_t i = 0; i < sizeof(quantities) / sizeof(*quantities); i++)
        printf("  %-8s  %s\n", quantities[i].name, quantities[i].doc);
    printf("where a RANGE is N (always that), A..B (uniform), or ~A..B (lognormal: one in twenty below A, one in\n"
           "twenty above B), and seconds may have a unit (ms, s, m, h);\n"
           "or a file that `sluice submit --wait --out` or `sluice watch --json` wrote: turns, tokens and times are\n"
           "drawn from those trajectories.\n");
}

void simulate_options_help(void)
{
    printf("sluice-simulate [OPTION ...]\n\n"
           "Says what a fleet would do: rollouts an hour, how busy each part is, how long jobs wait, what the\n"
           "bottleneck is and what to add. It drives the broker's own scheduling with a made-up clock, so a thousand\n"
           "nodes take seconds. Needs no broker, no engine and no worker. docs/capacity.md tells of the model.\n\n");
    print_rows();
    print_tasks();
    printf("\nFor example:\n\n"
           "  sluice simulate --engines 8 --tokens-per-second 4000 --nodes 16 --slots 64 --tasks swe\n"
           "  sluice simulate --engines 64 --nodes 1000 --slots 100 --queued 1000000 --samples 1\n"
           "  sluice simulate --tasks turns=8..30,prompt=2000,sampled=150..600,tool=0.2..5s,init=3s,eval=10s\n"
           "  sluice simulate --tasks trajectories.jsonl --engines 2 --per-hour 500\n\n"
           "Ends with 0 when it has simulated, 1 when a file cannot be read or memory is out, 2 for a wrong command line.\n");
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int wrong(const char *format, const char *word, const char *text, const struct row *row)
{
    fprintf(stderr, "sluice-simulate: ");
    fprintf(stderr, format, word, text, row ? (unsigned long long)row->least : 0,
            row ? (unsigned long long)row->most : 0);
    fprintf(stderr, "\nTry: sluice-simulate --help\n");
    return SIMULATE_USAGE;
}

static int take(const struct row *row, const char *text, struct simulate_options *ret)
{
    void *field = (char *)ret + row->offset;
    if (row->kind == OPTION_FLAG) {
        *(bool *)field = true;
        return 0;
    }
    if (row->kind == OPTION_TEXT) {
        *(const char **)field = text;
        return 0;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < row->least || value > row->most)
        return wrong("--%s: '%.40s' is not a whole number from %llu to %llu", row->word, text, row);
    *(uint64_t *)field = value;
    return 0;
}

static void preset(struct simulate_options *ret)
{
    *ret = (struct simulate_options){0};
    for (size_t i = 0; i < ROW_COUNT; i++) {
        void *field = (char *)ret + rows[i].offset;
        if (rows[i].kind == OPTION_NUMBER)
            *(uint64_t *)field = rows[i].preset;
        else if (rows[i].kind == OPTION_TEXT)
            *(const char **)field = rows[i].text;
    }
}

/* What follows from others, and what must fit them. */
static int complete(struct simulate_options *ret)
{
    if (ret->init_nodes > ret->nodes || ret->eval_nodes > ret->nodes)
        return wrong("--%s: there are not so many --nodes",
                     ret->init_nodes > ret->nodes ? "init-nodes" : "eval-nodes", "", NULL);
    ret->init_nodes = ret->init_nodes ? ret->init_nodes : ret->nodes;
    ret->eval_nodes = ret->eval_nodes ? ret->eval_nodes : ret->nodes;
    if (ret->nodes * ret->slots + ret->init_nodes * ret->init_slots + ret->eval_nodes * ret->eval_slots >
        4000000)
        return wrong("--slots: with these nodes all stages' are more than 4000000 together", "", "", NULL);
    if (!ret->queued)
        ret->queued = simulate_enough(ret->nodes * ret->slots);
    return 0;
}

int simulate_options_read(int argc, char **argv, struct simulate_options *ret)
{
    struct option table[ROW_COUNT + 1] = {{0}};
    for (int i = 0; i < ROW_COUNT; i++)
        table[i] = (struct option){rows[i].word,
                                   rows[i].kind == OPTION_FLAG ? no_argument : required_argument, NULL, i};
    preset(ret);
    optind = 1;
    int code = 0;
    for (int at; code == 0 && (at = getopt_long(argc, argv, ":", table, NULL)) != -1;) {
        if (at == '?')
            code = wrong("there is no option %s", argv[optind - 1], "", NULL);
        else if (at == ':')
            code = wrong("%s wants a value", argv[optind - 1], "", NULL);
        else
            code = take(&rows[at], optarg, ret);
    }
    if (code == 0 && optind < argc)
        code = wrong("one word too many: %s", argv[optind], "", NULL);
    return code || ret->help ? code : complete(ret);
}
