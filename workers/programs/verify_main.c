/* sluice-verify: are the tokens of trajectories what the engine says they are? (workers/verify/) */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/url.h"
#include "workers/verify/verify.h"

enum option_id {
    OPTION_NONE = 256, /* above every character, as getopt_long wants */
#define OPTION(name, word, argument, doc) OPTION_##name,
#include "workers/verify/options.def"
#undef OPTION
};

static const struct {
    const char *word, *argument, *doc;
} rows[] = {
#define OPTION(name, word, argument, doc) {word, argument, doc},
#include "workers/verify/options.def"
#undef OPTION
};

static const struct option long_options[] = {
#define OPTION(name, word, argument, doc)                                                          \
    {word, (argument) ? required_argument : no_argument, NULL, OPTION_##name},
#include "workers/verify/options.def"
#undef OPTION
    {0}};

static void print_help(FILE *out)
{
    fputs("sluice-verify TRAJECTORIES --engine URL [OPTION ...]\n\n"
          "Has an engine score every sampled token anew, after exactly the ids before it, and compares that\n"
          "with what was recorded when it was sampled; makes prompts and what tools said again from the messages,\n"
          "and compares the ids; checks masks, counts and the joints between turns. Each token and each trace is judged.\n"
          "TRAJECTORIES is a file of `sluice watch --json` or `sluice submit --out`; - is stdin. It takes about as\n"
          "long as sampling them did, twice. docs/verify.md tells what each finding means.\n\n",
          out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char head[40];
        snprintf(head, sizeof(head), "--%s %s", rows[i].word, rows[i].argument ? rows[i].argument : "");
        fprintf(out, "  %-22s %s\n", head, rows[i].doc);
    }
    fputs("\nFor example:\n\n"
          "  sluice watch train --json --timeout 1s > train.jsonl\n"
          "  sluice verify train.jsonl --engine http://127.0.0.1:8080 --plot train.svg\n\n"
          "Ends with 0 when all is good, 1 when an error was found or the mean difference of all is beyond the\n"
          "tolerance, 2 for a wrong command line, 3 when not everything could be scored.\n",
          out);
}

static enum verify_status wrong(const char *what, const char *word)
{
    fprintf(stderr, "sluice-verify: %s%s\nTry: sluice-verify --help\n", what, word);
    return VERIFY_USAGE;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *ret = value;
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && value >= 1 && value <= max;
}

static bool parse_tolerance(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && isfinite(*ret) && *ret >= 0;
}

static enum verify_status take_option(int id, const char *word, const char *value, struct verify_options *ret)
{
    switch (id) {
    case OPTION_engine:
        ret->engine = value;
        return VERIFY_GOOD;
    case OPTION_tolerance:
        return parse_tolerance(value, &ret->tolerance) ? VERIFY_GOOD : wrong("no number from 0 on: ", value);
    case OPTION_token_tolerance:
        return parse_tolerance(value, &ret->token_tolerance) ? VERIFY_GOOD : wrong("no number from 0 on: ", value);
    case OPTION_parallel:
        return parse_number(value, 64, &ret->parallel) ? VERIFY_GOOD : wrong("no number from 1 to 64: ", value);
    case OPTION_tokens:
        return parse_number(value, RECORD_TOKENS_MAX, &ret->tokens) ? VERIFY_GOOD : wrong("no number of tokens: ", value);
    case OPTION_once:
        ret->once = true;
        return VERIFY_GOOD;
    case OPTION_plot:
        ret->plot = value;
        return VERIFY_GOOD;
    case OPTION_json:
        ret->json = true;
        return VERIFY_GOOD;
    case OPTION_help:
        ret->help = true;
        return VERIFY_GOOD;
    default:
        return wrong("no such option, or its argument is missing: ", word);
    }
}

static enum verify_status parse(int argc, char **argv, struct verify_options *ret)
{
    enum verify_status status = VERIFY_GOOD;
    int id;
    opterr = 0;
    while (status == VERIFY_GOOD && (id = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
        status = take_option(id == 'h' ? OPTION_help : id, argv[optind - 1], optarg, ret);
    if (status != VERIFY_GOOD || ret->help)
        return status;
    if (optind + 1 != argc)
        return wrong(optind < argc ? "one word too many: " : "say which trajectories", optind < argc ? argv[argc - 1] : "");
    ret->path = argv[optind];
    if (!ret->engine)
        return wrong("say which engine scores them: --engine URL", "");
    struct url url;
    struct fail why;
    return url_parse(slice_from_str(ret->engine), &url, &why) < 0 ? wrong("that is no engine's URL: ", why.text)
                                                                  : VERIFY_GOOD;
}

int main(int argc, char **argv)
{
    struct verify_options options = {.tolerance = 0.02, .token_tolerance = 1, .parallel = 4};
    signal(SIGPIPE, SIG_IGN);
    log_open("verify", LOG_WARN);
    enum verify_status status = parse(argc, argv, &options);
    if (status == VERIFY_GOOD && options.help)
        print_help(stdout);
    else if (status == VERIFY_GOOD)
        status = verify_run(&options, stdout);
    if (fflush(stdout) != 0 && status == VERIFY_GOOD)
        status = VERIFY_UNSCORED;
    return (int)status;
}
