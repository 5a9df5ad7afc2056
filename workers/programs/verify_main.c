/* sluice-verify: are the tokens of trajectories what the engine says they are? (workers/verify/) */
#include <signal.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/base/url.h"
#include "common/cmdline/cmdline.h"
#include "workers/verify/verify.h"

static const struct option rows[] = {
#define OPTION(...) OPTION_ROW(struct verify_options, __VA_ARGS__)
#include "workers/verify/options.def"
#undef OPTION
};

static const struct cmdline_status statuses[] = {
    {VERIFY_GOOD, "all is good"},
    {VERIFY_WRONG, "an error was found, or the mean difference of all is beyond the tolerance"},
    {VERIFY_USAGE, "the command line is wrong"},
    {VERIFY_UNSCORED, "not everything could be scored"},
};

static const struct cmdline line = {
    .program = "sluice-verify",
    .arguments = "TRAJECTORIES",
    .arguments_min = 1,
    .arguments_max = 1,
    .brief = "Compares trajectories with what an engine says of their tokens",
    .doc = "Has an engine score every sampled token anew, after exactly the ids before it, and "
           "compares that with what was\n"
           "recorded when it was sampled; makes prompts and what tools said again from the "
           "messages, and compares the\n"
           "ids; checks masks, counts and the joints between turns. Each token and each trace is "
           "judged. TRAJECTORIES is\n"
           "a file of `sluice watch --json` or `sluice submit --out`; - is stdin. It takes about "
           "as long as sampling them\n"
           "did, twice. docs/verify.md tells what each finding means.\n",
    .example = "sluice watch train --json --timeout 1s > train.jsonl\n"
               "sluice verify train.jsonl --engine http://127.0.0.1:8080 --plot train.svg\n",
    .tables = {{.rows = rows, .count = ROWS(rows)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
};

/* -1 to go on. */
static int begin(int argc, char **argv, struct verify_options *ret)
{
    struct cmdline_values values = {.into = {ret}};
    struct url url;
    struct fail why;
    int status = cmdline_begin(&line, argc, argv, &values);
    if (status < 0)
        ret->path = values.arguments[0];
    cmdline_finish(&values);
    if (status < 0 && url_parse(slice_from_str(ret->engine), &url, &why) < 0)
        return cmdline_wrong(&line, "--engine: that is not an engine's URL: %s", why.text);
    return status;
}

int main(int argc, char **argv)
{
    struct verify_options options = {0};
    signal(SIGPIPE, SIG_IGN);
    int status = begin(argc - 1, argv + 1, &options);
    log_open("verify", LOG_WARN, (enum log_format)options.log_format);
    if (status >= 0)
        return status;
    status = (int)verify_run(&options, stdout);
    if (fflush(stdout) != 0 && status == VERIFY_GOOD)
        status = VERIFY_UNSCORED;
    return status;
}
