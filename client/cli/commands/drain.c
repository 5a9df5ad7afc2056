/* drain.c - `sluice drain`: tells workers to end, and with --wait watches them go. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/json/told.h"
#include "common/base/clock.h"

enum {
    LOOK_MS = 500,
    SAY_MS = 5000,
    ANSWER_MS = 60000, /* a restart of the broker is waited for */
    SETTLED_MS = 10000 /* a broker that was started again has heard by then of all that live */
};

struct drain_options {
    const char *host;
    bool wait, json;
    uint64_t grace_ms, patience_ms;
};

/* The workers that were told, of those that are still there. */
struct leaving {
    const char *worker, *host;
    json_t *told; /* their ids, as keys */
    size_t left;
    long long jobs;
    long long epoch; /* of the broker, before the drain was asked for */
    bool unsettled;  /* the broker was started again since: who is not there may yet come */
};

static bool is_meant(const struct leaving *leaving, const json_t *worker)
{
    return leaving->worker ? strcmp(told_text(worker, "worker"), leaving->worker) == 0
                           : strcmp(told_text(worker, "host"), leaving->host) == 0;
}

/* Before the drain is asked for: who is meant. A worker that starts later is not waited for. */
static void note_told(struct leaving *leaving, const json_t *worker)
{
    if (is_meant(leaving, worker))
        json_object_set_new(leaving->told, told_text(worker, "worker"), json_true());
}

static void count_left(struct leaving *leaving, const json_t *worker)
{
    if (!json_object_get(leaving->told, told_text(worker, "worker")))
        return;
    leaving->left++;
    leaving->jobs += told_number(worker, "jobs");
}

static int each_worker(struct sluice_client *client, struct leaving *leaving,
                       void (*take)(struct leaving *leaving, const json_t *worker))
{
    const char *text;
    int failed = sluice_status(client, &text);
    if (failed)
        return failed;
    json_t *status = json_loads(text, 0, NULL);
    long long epoch = told_number(status, "epoch");
    leaving->epoch = leaving->epoch ? leaving->epoch : epoch;
    leaving->unsettled = epoch != leaving->epoch && told_number(status, "uptime_ms") < SETTLED_MS;
    const json_t *workers = json_object_get(status, "workers");
    for (size_t i = 0; i < json_array_size(workers); i++)
        take(leaving, json_array_get(workers, i));
    json_decref(status);
    return 0;
}

static void say_left(const struct leaving *leaving)
{
    if (!leaving->left)
        cli_say("the broker was started again and may not have heard of all workers yet");
    else
        cli_say("still there: %zu, with %lld jobs", leaving->left, leaving->jobs);
}

static int wait_until_gone(struct sluice_client *client, struct leaving *leaving, const struct drain_options *options)
{
    int64_t start_ms = clock_ms(), said_ms = start_ms;
    for (;;) {
        leaving->left = 0;
        leaving->jobs = 0;
        int failed = each_worker(client, leaving, count_left);
        if (failed)
            return cli_failed(client);
        int64_t now_ms = clock_ms();
        if (!leaving->left && !leaving->unsettled) {
            printf("%s", options->json ? "" : "gone\n");
            return EXITS_OK;
        }
        if ((uint64_t)(now_ms - start_ms) >= options->patience_ms) {
            say_left(leaving);
            return EXITS_FAILED;
        }
        if (now_ms - said_ms >= SAY_MS) {
            say_left(leaving);
            said_ms = now_ms;
        }
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
    }
}

static int drain(const struct drain_options *options, struct sluice_client *client, struct leaving *leaving)
{
    uint64_t count;
    int64_t grace_s = options->grace_ms == OPTION_NOT_GIVEN ? -1 : (int64_t)((options->grace_ms + 999) / 1000);
    int failed = each_worker(client, leaving, note_told);
    if (!failed)
        failed = sluice_drain(client, leaving->worker, leaving->host, grace_s, &count);
    if (failed)
        return cli_failed(client);
    if (!options->json)
        printf("workers told to end: %llu\n", (unsigned long long)count);
    fflush(stdout);
    sluice_set_timeout(client, ANSWER_MS);
    int status = options->wait ? wait_until_gone(client, leaving, options) : EXITS_OK;
    if (options->json && options->wait)
        printf("{\"workers\": %llu, \"left\": %zu, \"jobs\": %lld}\n", (unsigned long long)count, leaving->left,
               leaving->jobs);
    else if (options->json)
        printf("{\"workers\": %llu}\n", (unsigned long long)count);
    return status;
}

static int run_drain(const struct invocation *in)
{
    const struct drain_options *options = in->options;
    struct leaving leaving = {.worker = in->argument_count ? in->arguments[0] : NULL, .host = options->host};
    if (!leaving.worker == !leaving.host)
        return cli_usage(in->command, "say either WORKER or --host HOST");
    AUTO_CLIENT *client = cli_connect(in);
    leaving.told = json_object();
    int status = client && leaving.told ? drain(options, client, &leaving) : EXITS_FAILED;
    json_decref(leaving.told);
    return status;
}

static const struct option options[] = {
    {"host", OPTION_TEXT, offsetof(struct drain_options, host), "HOST", "Drain every worker of this host."},
    {"grace", OPTION_DURATION, offsetof(struct drain_options, grace_ms), "TIME",
     "How long running jobs may take; then they are given back.", .standard = "the worker's own",
     .preset = OPTION_NOT_GIVEN, .min = 0, .max = 86400000},
    {"wait", OPTION_FLAG, offsetof(struct drain_options, wait), NULL, "Wait until the workers are gone."},
    {"patience", OPTION_DURATION, offsetof(struct drain_options, patience_ms), "TIME",
     "With --wait: give up after this long, with exit status 1.", .preset = PATIENCE_PRESET_MS, .min = 1000,
     .max = DURATION_FOREVER},
    {"json", OPTION_FLAG, offsetof(struct drain_options, json), NULL,
     "Print {\"workers\": N}, the number of workers drained; with --wait also how many are \"left\" and their "
     "\"jobs\"."},
};

const struct command command_drain = {
    COMMAND_LINE("drain"),
    .line.arguments = "[WORKER]",
    .line.brief = "Lets a worker, or a host's workers, finish and end",
    .line.doc = "A draining worker takes no new job. What it has it finishes, or gives back when "
                "the grace is\n"
                "over, and other workers go on with that; nothing is lost and no attempt is "
                "counted. 'sluice\n"
                "status' lists workers and hosts.\n",
    .line.example = "sluice drain --host node7 --grace 5m --wait\n"
                    "sluice drain node7-4711-9f2c\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct drain_options),
    .line.arguments_max = 1,
    .run = run_drain,
};
