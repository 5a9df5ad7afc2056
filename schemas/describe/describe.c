/*
 * sluice-describe messages-md|messages-json|tasks-md|tasks-json|limits-md|metrics-md - writes what the tables say, for
 * people (docs/contributing/messages.md, docs/tasks.md, parts of docs/sandbox.md and docs/metrics.md) and for other
 * languages (messages.json, tasks.json).
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "schemas/describe/cells.h"
#include "schemas/describe/tasks_json.h"
#include "schemas/describe/tasks_page.h"
#include "schemas/messages/example.h"
#include "schemas/limits.h"
#include "schemas/metrics/metrics.h"

static const char *const type_words[] = {"str", "bin", "uint", "real", "bool", "jobs"};
static const char *const sender_articles[] = {"a", "an", "a", "the", "a", "a"};
static const char *const sender_words[] = {"client", "admin", "worker", "broker", "host", "handler"};

static const struct outcome_row {
    const char *wire;
    bool trainable;
    const char *doc;
} outcomes[] = {
#define OUTCOME(name, wire, trainable, doc) {wire, trainable, doc},
#include "schemas/outcomes.def"
#undef OUTCOME
};

static bool is_bounded(const struct field *field) { return field->type != FIELD_REAL && field->type != FIELD_BOOL; }

/* ---- messages.json --------------------------------------------------------------------- */

static void put_quoted(const char *text)
{
    json_t *string = json_string(text);
    json_dumpf(string, stdout, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    json_decref(string);
}

static void put_member(const char *key, const char *text)
{
    printf("\"%s\": ", key);
    put_quoted(text);
}

static void put_json_field(const struct field *field, bool last)
{
    printf("     {\"name\": \"%s\", \"type\": \"%s\", \"required\": %s, ", field->name, type_words[field->type],
           field->need == FIELD_REQUIRED ? "true" : "false");
    if (field_is_json(field))
        printf("\"json\": true, ");
    if (is_bounded(field))
        printf("\"min\": %" PRIu64 ", \"max\": %" PRIu64 ", ", field->min, field->max);
    put_member("doc", field->doc);
    printf("}%s\n", last ? "" : ",");
}

static bool put_json_message(enum message_id id)
{
    const struct message *message = message_get(id);
    AUTO_BUFFER golden = {0};
    struct refusal no;
    if (!message_example(id, &golden, &no)) {
        fprintf(stderr, "sluice-describe: %s\n", no.text);
        return false;
    }
    printf("  {\"wire\": \"%s\", \"sender\": \"%s\", ", message->wire, sender_words[message->sender]);
    put_member("doc", message->doc);
    printf(",\n   \"golden\": \"");
    for (size_t i = 0; i < golden.len; i++)
        printf("%02x", golden.data[i]);
    printf("\",\n   \"fields\": [\n");
    for (size_t i = 0; i < message->field_count; i++)
        put_json_field(&message->fields[i], i + 1 == message->field_count);
    printf("   ]}%s\n", id + 1 == MESSAGE_COUNT ? "" : ",");
    return true;
}

static bool describe_messages_json(void)
{
    printf("{\n \"messages\": [\n");
    for (unsigned id = 0; id < MESSAGE_COUNT; id++)
        if (!put_json_message((enum message_id)id))
            return false;
    printf(" ],\n \"refusals\": [\n");
    for (unsigned i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++) {
        printf("  {\"name\": \"%s\", ", refusal_wire((enum refusal_reason)i));
        put_member("doc", refusal_doc((enum refusal_reason)i));
        printf("}%s\n", i + 1 == REFUSAL_COUNT ? "" : ",");
    }
    printf(" ],\n \"outcomes\": [\n");
    for (unsigned i = 0; i < OUTCOME_COUNT; i++) {
        printf("  {\"name\": \"%s\", \"trainable\": %s, ", outcomes[i].wire, outcomes[i].trainable ? "true" : "false");
        put_member("doc", outcomes[i].doc);
        printf("}%s\n", i + 1 == OUTCOME_COUNT ? "" : ",");
    }
    printf(" ]\n}\n");
    return true;
}

/* ---- docs/contributing/messages.md -------------------------------------------------------- */

static const char messages_intro[] =
    "# Messages\n\n"
    "Every message that crosses the wire. This page is made from `schemas/messages/messages.def`,\n"
    "`schemas/messages/refusals.def`, `schemas/outcomes.def` and `schemas/faults.def` by\n"
    "`sluice-describe messages-md`; a test compares them.\n\n"
    "A message is one ZeroMQ frame: its name as a MessagePack str, then a MessagePack map of its\n"
    "fields, in any order, and nothing after. (What is published has its topic in a frame of its "
    "own\n"
    "before it.) What is read and what is sent pass the same check, and what breaks the schema is\n"
    "refused by the field's name and a reason from the table below.\n\n"
    "| type | on the wire | bounds are |\n|---|---|---|\n"
    "| str | MessagePack str, UTF-8, no NUL | its length in bytes |\n"
    "| bin | MessagePack bin | its length in bytes |\n"
    "| uint | MessagePack integer, from 0 to 2^64 - 1 | its value |\n"
    "| real | MessagePack float, finite | |\n"
    "| bool | MessagePack true or false | |\n"
    "| jobs | MessagePack array of [job: str, token: uint] | its number of elements |\n\n"
    "`schemas/messages.json` is the same table for programs, with the bytes of one example of "
    "each\n"
    "message (`golden`, in hex).\n";

static void put_bounds(const struct field *field)
{
    if (!is_bounded(field) || (field->min == 0 && field->max == UINT64_MAX))
        printf(" ");
    else if (field->max == UINT64_MAX)
        printf(" from %" PRIu64 " ", field->min);
    else
        printf(" %" PRIu64 " to %" PRIu64 " ", field->min, field->max);
}

static void put_message(const struct message *message)
{
    printf("\n### `%s`\n\nFrom %s %s. ", message->wire, sender_articles[message->sender],
           sender_words[message->sender]);
    put_text(message->doc);
    printf("\n\n| field | type | required | bounds | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        printf("| `%s` | %s | %s |", field->name, type_words[field->type], field->need == FIELD_REQUIRED ? "yes" : "");
        put_bounds(field);
        put_last_cell(field->doc);
    }
}

static bool describe_messages_md(void)
{
    fputs(messages_intro, stdout);
    printf("\n## The messages\n");
    for (unsigned id = 0; id < MESSAGE_COUNT; id++)
        put_message(message_get((enum message_id)id));
    printf("\n## Refusals\n\nThe `reason` of a `refused`.\n\n| reason | meaning |\n|---|---|\n");
    for (unsigned i = REFUSAL_NONE + 1; i < REFUSAL_COUNT; i++)
        printf("| `%s` | %s |\n", refusal_wire((enum refusal_reason)i), refusal_doc((enum refusal_reason)i));
    printf("\n## Outcomes\n\nHow a job or a rollout may end. A rollout is trainable when its outcome "
           "may be and its evaluator ran to its end, or its task has none (`eval.kind` `none`).\n\n"
           "| outcome | may be trainable | meaning |\n|---|---|---|\n");
    for (unsigned i = 0; i < OUTCOME_COUNT; i++)
        printf("| `%s` | %s | %s |\n", outcomes[i].wire, outcomes[i].trainable ? "yes" : "no", outcomes[i].doc);
    printf("\n## Faults\n\nThe `fault` of a `job.result`.\n\n| fault | meaning |\n|---|---|\n");
#define FAULT(name, wire, doc) printf("| `%s` | %s |\n", wire, doc);
#include "schemas/faults.def"
#undef FAULT
    return true;
}

/* ---- docs/sandbox.md, its table of limits ------------------------------------------------------ */

static bool describe_limits_md(void)
{
    printf("| limit | field | held by | what happens there |\n|---|---|---|---|\n");
    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        const struct limit *limit = limit_get((enum limit_id)i);
        printf("| `%s` | `%s` | %s | %s |\n", limit->name, limit->field, limit->held, limit->effect);
    }
    return true;
}

/* ---- docs/metrics.md, its table ---------------------------------------------------------------- */

static bool describe_metrics_md(void)
{
    static const char *const kinds[] = {[FAMILY_COUNTER] = "counter",
                                        [FAMILY_GAUGE] = "gauge",
                                        [FAMILY_HISTOGRAM] = "histogram",
                                        [FAMILY_INFO] = "info"};
    printf("| metric | kind | labels | |\n|---|---|---|---|\n");
    for (enum metric_id id = 0; id < METRIC_COUNT; id++) {
        const struct metric *metric = metric_get(id);
        printf("| `%s` | %s | %s ", metric->family.name, kinds[metric->family.kind], metric->labels);
        put_last_cell(metric->family.help);
    }
    return true;
}

/* ---- the program ------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*describe)(void);
    } pages[] = {
        {"messages-md", describe_messages_md}, {"messages-json", describe_messages_json},
        {"tasks-md", describe_tasks_md},       {"tasks-json", describe_tasks_json},
        {"limits-md", describe_limits_md},     {"metrics-md", describe_metrics_md},
    };
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (argc == 2 && strcmp(argv[1], pages[i].name) == 0)
            return pages[i].describe() && fflush(stdout) == 0 ? 0 : 1;
    fprintf(stderr, "usage: sluice-describe messages-md|messages-json|tasks-md|tasks-json|limits-md|metrics-md\n");
    return 2;
}
