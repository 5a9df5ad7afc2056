/* status_print.c - the broker's status as a person reads it. */
#include <string.h>

#include "client/cli/print/print.h"
#include "client/cli/print/status_print.h"
#include "client/json/told.h"
#include "common/base/sanitize.h"
#include "schemas/messages/message.h"

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
static void add_row(struct columns *columns, const struct sheet *sheet, const char *name, const json_t *object)
{
    columns_add(columns, "%s", *name ? name : "-");
    for (const char *const *key = sheet->keys; *key; key++) {
        const json_t *value = json_object_get(object, *key);
        if (json_is_integer(value))
            columns_add(columns, "%lld", (long long)json_integer_value(value));
        else
            columns_add(columns, "%s", json_string_length(value) ? json_string_value(value) : "-");
    }
}

/* Nothing where there is none. */
static void print_object(const json_t *object, const struct sheet *sheet)
{
    if (!json_object_size(object))
        return;
    AUTO_COLUMNS columns = {0};
    const char *name;
    json_t *part;
    start_sheet(&columns, sheet);
    json_object_foreach((json_t *)object, name, part) add_row(&columns, sheet, name, part);
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
        add_row(&columns, sheet, told_text(json_array_get(array, i), name_key), json_array_get(array, i));
    putchar('\n');
    columns_print(&columns, stdout);
}

static void print_summary(const struct sluice_client *client, const json_t *status)
{
    const json_t *rollouts = json_object_get(status, "rollouts");
    char uptime[32];
    print_duration((uint64_t)told_number(status, "uptime_ms"), uptime, sizeof(uptime));
    sanitize_print(stdout, "broker    %s, up for %s, start number %lld\n", sluice_url(client), uptime,
                   told_number(status, "epoch"));
    printf("rollouts  %lld of at most %lld have not ended; ended since the start:", told_number(rollouts, "live"),
           told_number(rollouts, "limit"));
    for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
        printf("%s %lld %s", i ? "," : "", told_number(rollouts, outcome_wire(i)), outcome_wire(i));
    putchar('\n');
}

static void print_bottleneck(const json_t *bottleneck)
{
    if (json_is_object(bottleneck))
        sanitize_print(stdout, "waits for %s: %s\n", told_text(bottleneck, "part"), told_text(bottleneck, "why"));
}

/* For an admin alone. */
static void print_store(const json_t *store)
{
    const char *state = told_text(store, "state");
    if (!*state)
        return;
    if (strcmp(state, "off") == 0)
        printf("store     layers stay for ever: the broker was started without --store\n");
    else
        sanitize_print(stdout, "store     %s: %lld layers, %lld MiB; %lld layers, %lld MiB deleted since the start\n",
                       state, told_number(store, "layers"), told_number(store, "bytes") >> 20,
                       told_number(store, "freed_layers"), told_number(store, "freed_bytes") >> 20);
}

static void print_advice(const json_t *status)
{
    const json_t *advice = json_object_get(status, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++) {
        const char *sentence = json_string_value(json_array_get(advice, i));
        sanitize_print(stdout, "%s! %s\n", i ? "" : "\n", sentence ? sentence : "?");
    }
}

/* Whatever the broker counts of its clients: each number of the first is a column. */
static void print_clients(const json_t *clients)
{
    enum { KEYS_MAX = 12 };
    const char *keys[KEYS_MAX + 1], *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(json_array_get(clients, 0), key, value) if (json_is_integer(value) && count < KEYS_MAX)
        keys[count++] = key;
    keys[count] = NULL;
    print_array(clients, "name", &(struct sheet){"client", keys});
}

static void print_health(const json_t *status)
{
    const json_t *reasons = json_object_get(status, "reasons");
    const char *health = told_text(status, "health");
    sanitize_print(stdout, "health    %s\n", *health ? health : "not told");
    for (size_t i = 0; i < json_array_size(reasons); i++) {
        const char *reason = json_string_value(json_array_get(reasons, i));
        sanitize_print(stdout, "          %s\n", reason ? reason : "?");
    }
}

/* Of workers, those that offer something, or meant to. */
static void print_offers(const json_t *workers, const struct sheet *sheet)
{
    json_t *some = json_array();
    for (size_t i = 0; i < json_array_size(workers); i++) {
        json_t *worker = json_array_get(workers, i);
        if (*told_text(worker, "offers") || *told_text(worker, "offers_error"))
            json_array_append(some, worker);
    }
    print_array(some, "worker", sheet);
    json_decref(some);
}

static void print_tables(const json_t *status)
{
    static const char *const stage_keys[] = {"queued",  "leased", "delayed", "no_engine", "no_offer",
                                             "workers", "slots",  "free",    NULL};
    static const char *const worker_keys[] = {"stage",       "host",    "state",     "jobs",   "slots",
                                              "beat_ago_ms", "sandbox", "sandboxes", "kernel", NULL};
    static const char *const lost_keys[] = {"stage", "host", "jobs", "ago_ms", "why", NULL};
    static const char *const id_conflict_keys[] = {"key", "owner", "times", "ago_ms", NULL};
    static const char *const engine_keys[] = {"live",  "state",  "faults",         "retry_in_ms", "limit",
                                              "calls", "tokens", "cache_permille", "version",     NULL};
    static const char *const offer_keys[] = {"stage", "host", "offers", "offers_error", NULL};
    static const char *const need_keys[] = {"stage", "groups", "waiting", "workers", "free", NULL};
    static const char *const image_keys[] = {"state", "faults", "waiting", "retry_in_ms", NULL};
    static const char *const stream_keys[] = {"owner", "first", "head", "pending", "kept_bytes", "expired", NULL};
    static const char *const sampler_keys[] = {"batch", "submitted", "held", "live", "ready", "why", NULL};
    static const char *const limit_keys[] = {"used", "max", "percent", NULL};
    print_object(json_object_get(status, "stages"), &(struct sheet){"stage", stage_keys});
    print_array(json_object_get(status, "workers"), "worker", &(struct sheet){"worker", worker_keys});
    print_array(json_object_get(status, "lost"), "worker", &(struct sheet){"lost worker", lost_keys});
    print_array(json_object_get(status, "id_conflicts"), "worker",
                &(struct sheet){"another key's worker", id_conflict_keys});
    print_array(json_object_get(status, "engines"), "url", &(struct sheet){"engine", engine_keys});
    print_offers(json_object_get(status, "workers"), &(struct sheet){"worker with handlers", offer_keys});
    print_array(json_object_get(status, "needs"), "needs", &(struct sheet){"what tasks need of handlers", need_keys});
    print_array(json_object_get(status, "images"), "image", &(struct sheet){"image set aside", image_keys});
    print_array(json_object_get(status, "streams"), "name", &(struct sheet){"stream", stream_keys});
    print_array(json_object_get(status, "samplers"), "stream", &(struct sheet){"sampler", sampler_keys});
    print_clients(json_object_get(status, "clients"));
    if (json_object_size(json_object_get(status, "limits")))
        print_object(json_object_get(status, "limits"), &(struct sheet){"limit", limit_keys});
}

void status_print(const struct sluice_client *client, const json_t *status)
{
    print_health(status);
    print_summary(client, status);
    print_bottleneck(json_object_get(status, "bottleneck"));
    print_store(json_object_get(status, "store"));
    print_tables(status);
    print_advice(status);
}
