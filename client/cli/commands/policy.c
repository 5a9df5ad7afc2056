/* policy.c - `sluice policy`: what engines serve, and pauses while that changes. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/json/json.h"

struct policy_options {
    struct texts engines;
    uint64_t calls, bound_ms, wait_ms;
    bool json;
};

/* Each engine that is named, or all of them at once. */
static int each(struct sluice_client *client, const struct policy_options *options,
                int (*act)(struct sluice_client *client, const char *engine, void *arg), void *arg)
{
    int failed = options->engines.count ? 0 : act(client, NULL, arg);
    for (size_t i = 0; i < options->engines.count && !failed; i++)
        failed = act(client, options->engines.items[i], arg);
    return failed;
}

static int set_one(struct sluice_client *client, const char *engine, void *version)
{
    return sluice_policy_set(client, version, engine);
}

static int set_version(const struct invocation *in)
{
    const struct policy_options *options = in->options;
    char *version = in->arguments[0];
    if (!cli_is_name(in->command, "VERSION", version))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = each(client, options, set_one, version);
    if (failed)
        return cli_failed(client);
    if (options->json) {
        printf("{\"version\": ");
        json_text(stdout, version);
        printf("}\n");
    } else
        printf("version %s\n", version);
    return EXITS_OK;
}

static int resume_one(struct sluice_client *client, const char *engine, void *sum)
{
    uint64_t count = 0;
    int failed = sluice_policy_resume(client, engine, &count);
    *(uint64_t *)sum += count;
    return failed;
}

static int resume(const struct invocation *in)
{
    const struct policy_options *options = in->options;
    uint64_t count = 0;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = each(client, options, resume_one, &count);
    if (failed)
        return cli_failed(client);
    if (!count) {
        cli_say("nothing was paused: a pause ends by itself when its time is over");
        return EXITS_FAILED;
    }
    printf(options->json ? "{\"resumed\": %llu}\n" : "resumed; engines: %llu\n", (unsigned long long)count);
    return EXITS_OK;
}

static int pause_one(struct sluice_client *client, const char *engine, void *arg)
{
    static const char *const calls[] = {"finish", "abort", "hold"};
    const struct policy_options *options = arg;
    return sluice_policy_pause(client, calls[options->calls], engine, options->bound_ms, (int64_t)options->wait_ms);
}

/* All or nothing: what was paused before one that would not is let go again. */
static int pause_all(const struct invocation *in)
{
    const struct policy_options *options = in->options;
    uint64_t count = 0;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = each(client, options, pause_one, in->options);
    if (failed) {
        int status = cli_failed(client);
        each(client, options, resume_one, &count);
        return status;
    }
    printf(options->json ? "{\"paused_s\": %llu}\n" : "paused for at most %llu s\n",
           (unsigned long long)(options->bound_ms / 1000));
    return EXITS_OK;
}

static const struct cmdline_verb verbs[] = {
    {"set", "VERSION", set_version},
    {"pause", "", pause_all},
    {"resume", "", resume},
};

static const struct option options[] = {
    {"engine", OPTION_LIST, offsetof(struct policy_options, engines), "URL", "Only this engine.",
     .standard = "all that are registered"},
    {"calls", OPTION_WORD, offsetof(struct policy_options, calls), "finish|abort|hold",
     "What happens to calls in flight: finish (the command waits for them), abort (they are repeated after the "
     "pause) or hold (they stay open; the engine itself stops and resumes).",
     .of = "pause"},
    {"bound", OPTION_DURATION, offsetof(struct policy_options, bound_ms), "TIME",
     "Maximum length; the pause then ends by itself.", .preset = 600000, .min = 1000, .max = 3600000, .of = "pause"},
    {"wait", OPTION_DURATION, offsetof(struct policy_options, wait_ms), "TIME",
     "How long to wait for calls in flight; after that the pause is undone, with exit status 1.", .preset = 300000,
     .min = 0, .max = 3600000, .of = "pause"},
    {"json", OPTION_FLAG, offsetof(struct policy_options, json), NULL, "Print one JSON object instead of text."},
};

const struct command command_policy = {
    COMMAND_LINE("policy"),
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief = "Sets the version of the weights that engines serve, and pauses calls while they change",
    .line.doc = "Turns are marked with the version that sampled them. A trainer pauses the "
                "engines, updates their\n"
                "weights, sets the version and resumes: then no call spans two versions. Rollouts "
                "wait meanwhile\n"
                "and lose nothing, no time either.\n",
    .line.example = "sluice policy pause --bound 10m\n"
                    "sluice policy set step-120\n"
                    "sluice policy resume\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct policy_options),
};
