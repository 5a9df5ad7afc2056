#include <jansson.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/print.h"

struct status_options {
    bool json;
};

static long long number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* A table of numbers: what a row is called, then one column a key. */
struct sheet {
    const char *title;       /* of the first column */
    const char *const *keys; /* ends with NULL; also the headings, '_' shown as a blank */
};

static void add_heading(struct columns *columns, const char *text)
{
    char shown[32];
    snprintf(shown, sizeof(shown), "%s", text);
    for (char *at = shown; *at; at++)
        if (*at == '_')
            *at = ' ';
    columns_add(columns, "%s", shown);
}

static void start_sheet(struct columns *columns, const struct sheet *sheet)
{
    columns->count = 1;
    columns_add(columns, "%s", sheet->title);
    for (const char *const *key = sheet->keys; *key; key++) {
        add_heading(columns, *key);
        columns->count++;
    }
}

/* A missing key is a '-': another version of the broker may say more, or less. */
static void add_row(struct columns *columns, const struct sheet *sheet, const char *name,
                    const json_t *object)
{
    columns_add(columns, "%s", name);
    for (const char *const *key = sheet->keys; *key; key++) {
        const json_t *value = json_object_get(object, *key);
        if (json_is_integer(value))
            columns_add(columns, "%lld", (long long)json_integer_value(value));
        else
            columns_add(columns, "%s", json_is_string(value) ? json_string_value(value) : "-");
    }
}

static void print_object(const json_t *object, const struct sheet *sheet)
{
    AUTO_COLUMNS columns = {0};
    const char *name;
    json_t *part;
    start_sheet(&columns, sheet);
    json_object_foreach((json_t *)object, name, part)
        add_row(&columns, sheet, name, part);
    putchar('\n');
    columns_print(&columns, stdout);
}

/* Objects in an array, each named by its member `name_key`; nothing where there is none. */
static void print_array(const json_t *array, const char *name_key, const struct sheet *sheet)
{
    if (!json_array_size(array))
        return;
    AUTO_COLUMNS columns = {0};
    start_sheet(&columns, sheet);
    for (size_t i = 0; i < json_array_size(array); i++)
        add_row(&columns, sheet, word(json_array_get(array, i), name_key),
                json_array_get(array, i));
    putchar('\n');
    columns_print(&columns, stdout);
}

static void print_summary(const struct sluice_client *client, const json_t *status)
{
    const json_t *rollouts = json_object_get(status, "rollouts");
    char uptime[32];
    print_duration((uint64_t)number(status, "uptime_ms"), uptime, sizeof(uptime));
    printf("broker    %s, up for %s, start number %lld\n", sluice_url(client), uptime,
           number(status, "epoch"));
    printf("rollouts  %lld of at most %lld have not ended; ended since the start:",
           number(rollouts, "live"), number(rollouts, "limit"));
    static const char *const outcomes[] = {"ok", "agent", "task", "infra", "cancelled"};
    for (size_t i = 0; i < ROWS(outcomes); i++)
        printf("%s %lld %s", i ? "," : "", number(rollouts, outcomes[i]), outcomes[i]);
    putchar('\n');
}

static void print_advice(const json_t *status)
{
    const json_t *advice = json_object_get(status, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++)
        printf("%s! %s\n", i ? "" : "\n", json_string_value(json_array_get(advice, i)));
}

static void print_status(const struct sluice_client *client, const json_t *status)
{
    static const char *const stage_keys[] = {"queued", "leased", "delayed", "no_engine",
                                             "workers", "slots", "free", NULL};
    static const char *const worker_keys[] = {"stage", "host",  "state",
                                              "jobs",  "slots", "beat_ago_ms", NULL};
    static const char *const engine_keys[] = {"live", NULL};
    static const char *const stream_keys[] = {"first", "head", "pending", NULL};
    print_summary(client, status);
    print_object(json_object_get(status, "stages"), &(struct sheet){"stage", stage_keys});
    print_array(json_object_get(status, "workers"), "worker", &(struct sheet){"worker", worker_keys});
    print_array(json_object_get(status, "engines"), "url", &(struct sheet){"engine", engine_keys});
    print_array(json_object_get(status, "streams"), "name", &(struct sheet){"stream", stream_keys});
    print_advice(status);
}

static int run_status(const struct invocation *in)
{
    const struct status_options *options = in->options;
    AUTO_CLIENT *client = cli_connect(in);
    const char *json;
    if (!client)
        return EXITS_FAILED;
    int failed = sluice_status(client, &json);
    if (failed)
        return cli_failed(client, failed);
    if (options->json) {
        printf("%s\n", json);
        return EXITS_OK;
    }
    json_t *status = json_loads(json, 0, NULL);
    if (!json_is_object(status)) {
        cli_say("the broker's status is no JSON object");
        json_decref(status);
        return EXITS_FAILED;
    }
    print_status(client, status);
    json_decref(status);
    return EXITS_OK;
}

static const struct option options[] = {
    {"json", OPTION_FLAG, offsetof(struct status_options, json), NULL,
     "Prints everything the broker says, as one JSON object (docs/operations.md)."},
};

const struct command command_status = {
    .name = "status",
    .arguments = "",
    .brief = "Shows how the broker is: queues, workers, engines, streams, and what is missing",
    .doc = "A line that begins with '!' says in words what is missing and what to do.\n",
    .example = "sluice status\n"
               "sluice status --json\n",
    .options = options,
    .option_count = ROWS(options),
    .options_size = sizeof(struct status_options),
    .run = run_status,
};
