/* docs/trajectory.md, As JSON: the keys that are written, no more and no fewer, and which of them are optional. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/json/json.h"
#include "common/base/buffer.h"
#include "common/base/cleanup.h"

enum { KEYS_MAX = 192 };
struct keys {
    char names[KEYS_MAX][96]; /* "traces[].turns[].role" */
    size_t count;
};

static bool has(const struct keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->names[i], name) == 0)
            return true;
    return false;
}

static void add(struct keys *keys, const char *name)
{
    assert_true(keys->count < KEYS_MAX);
    snprintf(keys->names[keys->count++], sizeof(keys->names[0]), "%s", name);
}

static void gather(struct keys *keys, const char *parent, json_t *value)
{
    char name[96];
    const char *key;
    json_t *member;
    json_object_foreach(value, key, member)
    {
        snprintf(name, sizeof(name), "%.40s%s%.40s", parent, *parent ? "." : "", key);
        add(keys, name);
        if (json_is_array(member) && json_is_object(json_array_get(member, 0)))
            snprintf(name, sizeof(name), "%.40s%s%.40s[]", parent, *parent ? "." : "", key);
        gather(keys, name, json_is_array(member) ? json_array_get(member, 0) : member);
    }
}

static void written_keys(struct keys *keys, const struct sluice_trajectory *trajectory)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    json_trajectory(out, trajectory);
    assert_int_equal(fclose(out), 0);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    gather(keys, "", json);
    json_decref(json);
}

static const uint32_t ids[] = {1};
static const uint8_t mask[] = {1};
static const float logprobs[] = {-0.5f};
static const struct sluice_sampling sampling = {.temperature = 1, .top_p = 1, .max_tokens = 1, .seed = 7};
static const struct sluice_span span = {.length = 1, .version = "v"};
static const struct sluice_stretch stretch = {.length = 1};
static const struct sluice_turn full_turn = {.role = "assistant",
                                             .length = 1,
                                             .finish = "stop",
                                             .masked = "auxiliary",
                                             .engine = "http://e",
                                             .version = "v",
                                             .sampling = &sampling,
                                             .versions = &span,
                                             .version_count = 1};
static const struct sluice_turn bare_turn = {.role = "prompt",
                                             .length = 1,
                                             .finish = "",
                                             .engine = "",
                                             .version = "",
                                             .queue_seconds = -1,
                                             .prefill_seconds = -1,
                                             .decode_seconds = -1};
/* The assistant's has no tool, but what is said of both is said. */
static const struct sluice_message full_message = {.role = "assistant", .content = "", .tool = "bash: ls"};
static const struct sluice_message bare_message = {.role = "user", .content = ""};
static const uint32_t counts[] = {1};
static const struct sluice_column full_column = {
    .name = "kept_ids", .type = "u32", .rows = 1, .counts = counts, .values = ids, .value_bytes = 4};
static const struct sluice_column bare_column = {
    .name = "teacher_logprobs", .type = "f32", .rows = 1, .values = logprobs, .value_bytes = 4};
static const struct sluice_part part = {.name = "correct", .value = 1, .weight = 0.5};
static const struct sluice_metric metric = {.name = "edits", .value = 3};
static const struct sluice_test test = {.name = "test_sum", .status = "failed", .message = "3", .seconds = 0.5};
static const struct sluice_tests test_counts = {.failed = 1, .pass_fraction = 0, .list = &test, .list_count = 1};
static const struct sluice_breach breach = {.limit = "disk", .count = 1};
static const struct sluice_sandbox sandbox = {.breaches = &breach, .breach_count = 1};
static const struct sluice_touched touched = {.what = "shell", .path = "bin/bash"};
static const struct sluice_tamper tamper = {.count = 1, .files = &touched, .file_count = 1};

/* One with all that there can be, or with no more than there must be. */
static void make_keys(struct keys *keys, bool is_full)
{
    const struct sluice_trace trace = {.token_ids = ids,
                                       .mask = mask,
                                       .logprobs = logprobs,
                                       .token_count = 1,
                                       .turns = is_full ? &full_turn : &bare_turn,
                                       .turn_count = 1,
                                       .columns = is_full ? &full_column : &bare_column,
                                       .column_count = 1,
                                       .messages = is_full ? &stretch : NULL,
                                       .stretch_count = is_full,
                                       .reason = "",
                                       .label = is_full ? "main" : "",
                                       .template_digest = "",
                                       .tokenizer_digest = ""};
    const struct sluice_trajectory trajectory = {.stream = "s",
                                                 .rollout = "g/0",
                                                 .group = "g",
                                                 .task = "t",
                                                 .outcome = "ok",
                                                 .parts = &part,
                                                 .part_count = 1,
                                                 .metrics = &metric,
                                                 .metric_count = 1,
                                                 .tests = is_full ? &test_counts : NULL,
                                                 .eval_sandbox = is_full ? "agent" : NULL,
                                                 .patch = is_full ? "" : NULL,
                                                 .group_size = is_full ? 8 : 0,
                                                 .group_ended = is_full ? 3 : 0,
                                                 .metadata = is_full ? "{}" : "",
                                                 .end = "",
                                                 .detail = "",
                                                 .init_layer = "",
                                                 .engine = "",
                                                 .agent = "",
                                                 .logprobs_mode = "",
                                                 .template_digest = "",
                                                 .tokenizer_digest = "",
                                                 .traces = &trace,
                                                 .trace_count = 1,
                                                 .messages = is_full ? &full_message : &bare_message,
                                                 .message_count = 1,
                                                 .sandbox = is_full ? &sandbox : NULL,
                                                 .tamper = is_full ? &tamper : NULL};
    written_keys(keys, &trajectory);
}

/* The page's keys; and those that it calls optional, with what lies in them. */
static void read_page(struct keys *all, struct keys *optional)
{
    char path[4096];
    AUTO_BUFFER page = {0};
    assert_non_null(getenv("SLUICE_SOURCE_DIR"));
    snprintf(path, sizeof(path), "%s/docs/trajectory.md", getenv("SLUICE_SOURCE_DIR"));
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_non_null(file);
    uint8_t *room = buffer_reserve(&page, 131072);
    assert_non_null(room);
    page.len = fread(room, 1, 131071, file);
    assert_true(buffer_append(&page, "", 1));
    char *at = strstr((char *)page.data, "\n## As JSON\n"), *end = at ? strstr(at + 4, "\n## ") : NULL;
    assert_non_null(end);
    for (*end = '\0'; (at = strstr(at, "\n| `")); at++) {
        char name[96], row[512];
        assert_int_equal(sscanf(at, "\n| `%90[^`]` |%500[^\n]", name, row), 2);
        add(all, name);
        const bool is_within = strncmp(name, "sandbox.", 8) == 0 || strncmp(name, "tamper.", 7) == 0 ||
                               strncmp(name, "tests.", 6) == 0 || strstr(name, ".sampling.") ||
                               strstr(name, ".versions[]") || strncmp(name, "traces[].messages[]", 19) == 0;
        if (is_within || strstr(row, "*optional*"))
            add(optional, name);
    }
}

static void the_page_has_each_key_that_is_written_and_says_which_may_be_absent(void **state)
{
    (void)state;
    struct keys full = {.count = 0}, bare = {.count = 0}, told = {.count = 0}, optional = {.count = 0};
    make_keys(&full, true);
    make_keys(&bare, false);
    read_page(&told, &optional);
    for (size_t i = 0; i < full.count; i++)
        if (!has(&told, full.names[i]) || has(&bare, full.names[i]) == has(&optional, full.names[i]))
            fail_msg("%s: is it on the page, and optional or not?", full.names[i]);
    for (size_t i = 0; i < told.count; i++)
        if (!has(&full, told.names[i]))
            fail_msg("%s is not written", told.names[i]);
    assert_int_equal(told.count, full.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_has_each_key_that_is_written_and_says_which_may_be_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
