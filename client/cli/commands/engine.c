/* engine.c - `sluice engine`: inference servers, registered, drained and removed. */
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "client/cli/command.h"
#include "client/json/json.h"
#include "client/cli/commands/engine_probe.h"
#include "client/cli/connect.h"
#include "client/cli/programs/siblings.h"
#include "client/json/told.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/sanitize.h"
#include "common/base/url.h"

enum { PROBE_MS = 2000, LOOK_MS = 500, PROBE_WAIT_MS = 8000, PROBE_WAIT_STEP_MS = 50 };

struct engine_options {
    uint64_t runs_max, patience_ms, model_context;
    const char *policy, *model_dir;
    bool wait, json;
};

static struct slice shown(const char *url) { return url_shown(slice_from_str(url)); }

/* EXITS_OK, or says what is wrong. */
static int parse_url(const char *url, struct url *ret)
{
    struct fail why;
    if (url_parse(slice_from_str(url), ret, &why) == 0)
        return EXITS_OK;
    return cli_usage(&command_engine, "'%.*s' is not a base URL such as http://gpu1:8000: %s", SLICE_ARG(shown(url)),
                     why.text);
}

enum verdict { VERDICT_WAIT, VERDICT_GOOD, VERDICT_OTHER, VERDICT_STRANGE };

/* Of an engine that the broker knows: whether run workers have found that it serves what its policy does. */
static enum verdict judge(const json_t *status, const char *base)
{
    const json_t *engines = json_object_get(status, "engines"), *engine;
    const json_t *runs = json_object_get(json_object_get(status, "stages"), "run");
    size_t i;
    json_array_foreach(engines, i, engine)
    {
        if (strcmp(told_text(engine, "url"), base) != 0)
            continue;
        if (strcmp(told_text(engine, "state"), "other") == 0) {
            cli_say("%s gets no rollouts: %s; remove it, or say that it is another policy's: "
                    "sluice engine add %s --policy NAME",
                    base, told_text(engine, "error"), base);
            return VERDICT_OTHER;
        }
        bool is_known = *told_text(engine, "template_digest"),
             has_answered = json_is_true(json_object_get(engine, "has_answered"));
        bool is_away = *told_text(engine, "error") || strcmp(told_text(engine, "state"), "paused") == 0;
        bool has_workers = told_number(runs, "workers") > 0;
        if (has_answered && !is_known && !is_away) /* its worker has asked what it is, too */
            return VERDICT_STRANGE;
        return is_known || is_away || !has_workers ? VERDICT_GOOD : VERDICT_WAIT;
    }
    return VERDICT_GOOD; /* removed meanwhile, or one of very many */
}

/* Until a run worker has probed it, or for a while. */
static int await_probe(struct sluice_client *client, const char *base)
{
    int64_t start_ms = clock_ms();
    enum verdict verdict = VERDICT_WAIT;
    while (verdict == VERDICT_WAIT && clock_ms() - start_ms < PROBE_WAIT_MS) {
        const char *text;
        int failed = sluice_status(client, &text);
        if (failed)
            return cli_failed(client);
        json_t *status = json_loads(text, 0, NULL);
        verdict = judge(status, base);
        json_decref(status);
        if (verdict == VERDICT_WAIT)
            nanosleep(&(struct timespec){0, PROBE_WAIT_STEP_MS * 1000000}, NULL);
    }
    if (verdict == VERDICT_WAIT)
        cli_say("warning: no run worker has probed it yet; `sluice engine list` will say what came "
                "of it");
    if (verdict == VERDICT_STRANGE)
        cli_say("warning: something answers at %s, but as no engine that is known here: rollouts will fail there; "
                "`sluice engine check %s` says what it lacks",
                base, base);
    return verdict == VERDICT_OTHER ? EXITS_FAILED : EXITS_OK;
}

/* Where it was another policy's, how to take that back. */
static void say_added(const char *base, const struct engine_options *options, const char *moved_from)
{
    if (!moved_from) {
        printf("registered %s\n", base);
        return;
    }
    printf("moved %s from the policy %s to %s\n", base, moved_from, options->policy);
    cli_say("%s no longer serves the policy %s; to move it back: sluice engine add %s --policy %s", base, moved_from,
            base, moved_from);
}

static void print_added(const char *base, const struct engine_options *options, const char *moved_from)
{
    json_t *said = json_pack("{s:s, s:s*, s:s*}", "url", base, "policy", options->policy, "moved_from", moved_from);
    AUTO_FREE char *text = said ? json_dumps(said, JSON_COMPACT) : NULL;
    json_line(stdout, text ? text : "{}");
    json_decref(said);
}

static int add_engine(const struct invocation *in)
{
    const struct engine_options *options = in->options;
    const char *url = in->arguments[0];
    struct fail fail;
    struct url parts;
    int status = parse_url(url, &parts);
    if (status != EXITS_OK)
        return status;
    if (options->policy && !cli_is_name(&command_engine, "--policy", options->policy))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    const char *moved_from;
    int failed = sluice_engine_move(client, url, options->runs_max, options->policy, &moved_from);
    if (failed)
        return cli_failed(client);
    (options->json ? print_added : say_added)(parts.base, options, moved_from);
    fflush(stdout);
    if (engine_probe(url, PROBE_MS, &fail)) {
        cli_say("warning: from here it does not answer: %s", fail.text);
        return EXITS_OK;
    }
    return await_probe(client, parts.base);
}

static int remove_engine(const struct invocation *in)
{
    const char *url = in->arguments[0];
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = sluice_engine_remove(client, url);
    if (failed)
        return cli_failed(client);
    printf("removed %.*s; rollouts that use it now go on\n", SLICE_ARG(shown(url)));
    return EXITS_OK;
}

/* The request says how many are still there, and may be repeated. */
static int drain_engine(const struct invocation *in)
{
    const struct engine_options *options = in->options;
    const char *url = in->arguments[0];
    int64_t start_ms = clock_ms();
    uint64_t count;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    for (;;) {
        int failed = sluice_engine_drain(client, url, &count);
        if (failed)
            return cli_failed(client);
        if (!options->wait || count == 0)
            break;
        if ((uint64_t)(clock_ms() - start_ms) >= options->patience_ms) {
            cli_say("still there: %llu rollouts", (unsigned long long)count);
            return EXITS_FAILED;
        }
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
    }
    printf("draining %.*s; rollouts that are there: %llu\n", SLICE_ARG(shown(url)), (unsigned long long)count);
    return EXITS_OK;
}

static void print_engine(const json_t *engine)
{
    const char *name = json_string_value(json_object_get(engine, "url"));
    const char *word = json_string_value(json_object_get(engine, "state"));
    const char *error = json_string_value(json_object_get(engine, "error"));
    const char *policy = json_string_value(json_object_get(engine, "policy"));
    sanitize_print(stdout, "%s  %lld rollouts", name ? name : "?", told_number(engine, "live"));
    if (told_number(engine, "limit"))
        printf(" of %lld", told_number(engine, "limit"));
    printf(", %lld tokens, %lld calls", told_number(engine, "tokens"), told_number(engine, "calls"));
    if (json_object_get(engine, "cache_permille"))
        printf(", cache %lld %%", told_number(engine, "cache_permille") / 10);
    if (policy && strcmp(policy, "default") != 0)
        sanitize_print(stdout, ", policy %s", policy);
    if (word)
        sanitize_print(stdout, ", %s", word);
    if (error)
        sanitize_print(stdout, ": %s", error);
    putchar('\n');
}

static int list_engines(const struct invocation *in)
{
    const struct engine_options *options = in->options;
    const char *text;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    int failed = sluice_status(client, &text);
    if (failed)
        return cli_failed(client);
    json_t *status = json_loads(text, 0, NULL);
    const json_t *engines = json_object_get(status, "engines");
    for (size_t i = 0; i < json_array_size(engines); i++) {
        AUTO_FREE char *json = options->json ? json_dumps(json_array_get(engines, i), JSON_COMPACT) : NULL;
        if (json)
            json_line(stdout, json);
        else
            print_engine(json_array_get(engines, i));
    }
    if (!json_array_size(engines) && !options->json)
        printf("no engine is registered\n");
    json_decref(status);
    return EXITS_OK;
}

/* What only workers know: their program does it, and its exit status is the command's. */
static int check_engine(const struct invocation *in)
{
    const struct engine_options *given = in->options;
    struct url url;
    int status = parse_url(in->arguments[0], &url);
    if (status != EXITS_OK)
        return status;
    char context[32];
    const char *arguments[7] = {"--engine-check", in->arguments[0]};
    size_t count = 2;
    snprintf(context, sizeof(context), "--model-context=%llu", (unsigned long long)given->model_context);
    if (given->json)
        arguments[count++] = "--json";
    if (given->model_context)
        arguments[count++] = context;
    if (given->model_dir) {
        arguments[count++] = "--model-dir";
        arguments[count++] = given->model_dir;
    }
    struct invocation with = *in;
    with.arguments = (char **)(uintptr_t)arguments;
    with.argument_count = count;
    return exec_sibling(&with, "sluice-worker", "workers");
}

static const struct cmdline_verb verbs[] = {
    {"add", "URL", add_engine}, {"check", "URL", check_engine},   {"drain", "URL", drain_engine},
    {"list", "", list_engines}, {"remove", "URL", remove_engine},
};

static const struct option options[] = {
    {"runs-max", OPTION_NUMBER, offsetof(struct engine_options, runs_max), "N",
     "Maximum rollouts at a time. 0: no limit, or what it was.", .preset = 0, .min = 0, .max = 1000000, .of = "add"},
    {"policy", OPTION_TEXT, offsetof(struct engine_options, policy), "NAME", "The policy that the engine serves.",
     .standard = "the usual policy's, `default`, or what it was", .of = "add"},
    {"wait", OPTION_FLAG, offsetof(struct engine_options, wait), NULL, "Wait until the engine has no rollouts.",
     .of = "drain"},
    {"patience", OPTION_DURATION, offsetof(struct engine_options, patience_ms), "TIME",
     "With --wait: give up after this long, with exit status 1; the engine goes on draining.",
     .preset = PATIENCE_PRESET_MS, .min = 1000, .max = DURATION_FOREVER, .of = "drain"},
    {"model-dir", OPTION_TEXT, offsetof(struct engine_options, model_dir), "DIR",
     "The model's directory, for an engine that offers POST /generate alone, as the option of sluice-worker.",
     .standard = "none", .of = "check"},
    {"model-context", OPTION_NUMBER, offsetof(struct engine_options, model_context), "N",
     "Tokens of prompt and reply together that such an engine takes.", .min = 2, .max = 1 << 26,
     .standard = "what the directory says", .of = "check"},
    {"json", OPTION_FLAG, offsetof(struct engine_options, json), NULL, "Print JSON, one object a line.",
     .of = "add check list"},
};

const struct command command_engine = {
    COMMAND_LINE("engine"),
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief = "Registers, checks, drains, lists and removes LLM inference servers",
    .line.doc = "A rollout is placed on the engine whose rollouts hold the least tokens at that "
                "moment, and\n"
                "stays there. Registering one twice is registering it once, and takes back one "
                "that drains; with another --policy it is moved to that one, which is said. One\n"
                "that is drained or removed gets no more rollouts, and one that does not answer "
                "none until it does\n"
                "('list' says silent, and why). The engines of one policy serve one tokenizer and "
                "one chat template: 'add'\n"
                "waits for a run worker's first probe, and exits 1 if this one serves others "
                "('list' says other). 'check' needs no broker: it tries a live server\n"
                "against all that is wanted of one (docs/engines.md), and exits 0 if all is well, "
                "1 if a check\n"
                "failed, 2 if the server is unreachable or cannot return exact tokens.\n",
    .line.example = "sluice engine check http://gpu1:8000\n"
                    "sluice engine add http://gpu1:8000\n"
                    "sluice engine list\n"
                    "sluice engine drain http://gpu1:8000 --wait\n"
                    "sluice engine remove http://gpu1:8000\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct engine_options),
};
