/* sample_record.h - for tests of trajectory records: one with a little of everything. */
#ifndef SLUICE_TESTS_SCHEMAS_TRAJECTORY_SAMPLE_RECORD_H
#define SLUICE_TESTS_SCHEMAS_TRAJECTORY_SAMPLE_RECORD_H

#include "common/base/cleanup.h"
#include "schemas/trajectory/trajectory.h"

#define AUTO_RECORD __attribute__((cleanup(record_finish))) struct record

static const struct record_turn prompt_turn = {.role = "prompt"};
static const struct record_turn said_turn = {.role = "assistant",
                                             .finish = "stop",
                                             .engine = "http://127.0.0.1:8080",
                                             .version = "step-7",
                                             .prompt_tokens = 3,
                                             .cached_tokens = 1,
                                             .seconds = 0.25,
                                             .prefill_seconds = {true, 0},
                                             .decode_seconds = {true, 0.125}};

/* Two traces, three turns, an empty one, messages with and without a tool, a sandbox. */
static inline void make_record(struct record *record)
{
    static const uint32_t ids[] = {101, 102, 103, 4294967295u};
    static const float logprobs[] = {-0.5f, -0.25f};
    record_init(record);
    strcpy(record->agent, "bash");
    strcpy(record->template_digest, "sha256:9f86d081884c7d65");
    strcpy(record->tokenizer_digest, "sha256:1b4f0e9851971998");
    strcpy(record->logprobs_mode, "raw");
    assert_true(record_start_trace(record, ""));
    assert_true(record_append(record, &prompt_turn, ids, NULL, 3, false));
    assert_true(record_append(record, &said_turn, ids + 2, logprobs, 2, true));
    assert_true(record_append(record, &(struct record_turn){.role = "tool", .seconds = 1.5}, NULL, NULL, 0, false));
    strcpy(record->template_digest, "sha256:60303ae22b998861");
    assert_true(record_start_trace(record, "the template moved"));
    assert_true(record_append(record, &prompt_turn, ids, NULL, 4, false));
    assert_true(record_say(record, "user", slice_from_str("1+1?"), NULL, 0));
    assert_true(record_say(record, "tool", slice_from_str("gr\xc3\xbc\xc3\x9f"), "bash: ls -l", -9));
    struct record_sandbox *sandbox = record_add_sandbox(record);
    assert_non_null(sandbox);
    sandbox->peak_memory_kib = 5000000000u;
    sandbox->peak_processes = 12;
    sandbox->cpu_seconds = 0.5;
    sandbox->commands = 3;
    sandbox->cut_bytes = 77;
    assert_true(record_add_breach(sandbox, "disk", 2) && record_add_breach(sandbox, "memory", 0));
}

static inline void make_bytes(struct buffer *out)
{
    AUTO_RECORD record;
    struct refusal no = {0};
    make_record(&record);
    if (!record_encode(&record, out, &no))
        fail_msg("%s", no.text);
}

static inline bool holds(const struct buffer *bytes, const char *text)
{
    return memmem(bytes->data, bytes->len, text, strlen(text)) != NULL;
}

#endif
