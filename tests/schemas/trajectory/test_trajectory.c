#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "schemas/trajectory/verdict.h"
#include "tests/schemas/trajectory/sample_record.h"

static bool traces_equal(const struct record_trace *a, const struct record_trace *b)
{
    size_t count = a->token_count;
    return count == b->token_count && a->turn_count == b->turn_count && strcmp(a->reason, b->reason) == 0 &&
           strcmp(a->template_digest, b->template_digest) == 0 &&
           strcmp(a->tokenizer_digest, b->tokenizer_digest) == 0 &&
           memcmp(a->token_ids, b->token_ids, count * sizeof(*a->token_ids)) == 0 &&
           memcmp(a->mask, b->mask, count) == 0 &&
           memcmp(a->logprobs, b->logprobs, count * sizeof(*a->logprobs)) == 0 &&
           memcmp(a->turns, b->turns, a->turn_count * sizeof(*a->turns)) == 0;
}

/* ---- there and back ------------------------------------------------------------------- */

static void a_record_survives_the_round_trip(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0}, again = {0};
    struct refusal no;
    make_record(&made);
    assert_true(record_encode(&made, &bytes, &no));
    assert_true(record_decode(buffer_peek(&bytes), &read, &no));
    assert_int_equal(read.version, RECORD_VERSION);
    assert_string_equal(read.agent, "bash");
    assert_string_equal(read.template_digest, "sha256:60303ae22b998861");
    assert_string_equal(read.tokenizer_digest, "sha256:1b4f0e9851971998");
    assert_string_equal(read.logprobs_mode, "raw");
    assert_int_equal(read.trace_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(traces_equal(&made.traces[i], &read.traces[i]));
    assert_string_equal(read.traces[0].template_digest, "sha256:9f86d081884c7d65");
    assert_string_equal(read.traces[1].template_digest, "sha256:60303ae22b998861");
    assert_string_equal(read.traces[1].tokenizer_digest, "sha256:1b4f0e9851971998");
    const struct record_turn *said = &read.traces[0].turns[1];
    assert_int_equal(said->offset, 3);
    assert_int_equal(said->length, 2);
    assert_false(said->queue_seconds.is_known);
    assert_true(said->prefill_seconds.is_known && said->prefill_seconds.value == 0);
    assert_true(said->decode_seconds.is_known && said->decode_seconds.value == 0.125);
    assert_int_equal(read.message_count, 2);
    assert_null(read.messages[0].tool);
    assert_string_equal(read.messages[1].tool, "bash: ls -l");
    assert_string_equal(read.messages[1].content, "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(read.messages[1].exit_status, -9);
    assert_int_equal(read.sandbox->peak_memory_kib, 5000000000u);
    assert_int_equal(read.sandbox->peak_processes, 12);
    assert_true(read.sandbox->cpu_seconds == 0.5);
    assert_int_equal(read.sandbox->commands, 3);
    assert_int_equal(read.sandbox->cut_bytes, 77);
    assert_int_equal(read.sandbox->breach_count, 1);
    assert_string_equal(read.sandbox->breaches[0].limit, "disk");
    assert_int_equal(read.sandbox->breaches[0].count, 2);
    assert_true(record_encode(&read, &again, &no));
    assert_true(slice_equal(buffer_peek(&bytes), buffer_peek(&again)));
}

static void what_was_noted_survives_the_round_trip_and_is_bounded_and_checked(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0};
    struct refusal no = {0};
    make_record(&made);
    assert_true(record_say(&made, "note", slice_from_str("a plan"), NULL, 0));
    assert_true(record_note_metric(&made, "edits", 2, &no) && record_note_metric(&made, "edits", 3, &no));
    assert_false(record_note_metric(&made, "", 1, &no));
    assert_string_equal(no.field, "metrics[1].name");
    assert_false(record_note_metric(&made, "edits", INFINITY, &no) || record_note_metric(&made, "more", NAN, &no));
    for (int i = 1; i < VERDICT_METRICS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d", i);
        assert_true(record_note_metric(&made, name, i, &no));
    }
    assert_false(record_note_metric(&made, "more", 1, &no));
    assert_non_null(strstr(no.text, "more than 256 metrics"));
    assert_true(record_encode(&made, &bytes, &no) && record_decode(buffer_peek(&bytes), &read, &no));
    assert_string_equal(read.messages[2].role, "note");
    assert_int_equal(read.noted->metric_count, VERDICT_METRICS_MAX);
    assert_string_equal(read.noted->metrics[0].name, "edits");
    assert_true(read.noted->metrics[0].value == 3);
    strcpy(made.noted->metrics[1].name, "edits");
    assert_false(record_encode(&made, &bytes, &no));
    assert_string_equal(no.field, "metrics[1].name");
}

static void what_the_engine_does_not_tell_takes_no_bytes(void **state)
{
    (void)state;
    AUTO_RECORD made;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    make_record(&made);
    assert_true(record_encode(&made, &bytes, &no));
    assert_false(holds(&bytes, "queue_seconds"));
    made.traces[0].turns[1].queue_seconds = (struct record_seconds){true, 0.5};
    buffer_clear(&bytes);
    assert_true(record_encode(&made, &bytes, &no));
    assert_true(holds(&bytes, "queue_seconds"));
}

static void an_empty_record_and_an_empty_trace_survive_it_too(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    record_init(&made);
    record_init(&read);
    for (int traces = 0; traces < 2; traces++) {
        buffer_clear(&bytes);
        record_finish(&read);
        assert_true(record_encode(&made, &bytes, &no));
        assert_true(record_decode(buffer_peek(&bytes), &read, &no));
        assert_int_equal(read.trace_count, traces);
        assert_true(record_start_trace(&made, ""));
    }
}

static void what_was_read_can_be_appended_to(void **state)
{
    (void)state;
    AUTO_RECORD read;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    uint32_t ids[1000] = {7};
    make_bytes(&bytes);
    assert_true(record_decode(buffer_peek(&bytes), &read, &no));
    assert_true(record_append(&read, &prompt_turn, ids, NULL, 1000, false));
    assert_true(record_say(&read, "user", slice_from_str("more"), NULL, 0));
    assert_int_equal(read.traces[1].token_count, 1004);
    assert_true(record_check(&read, &no));
}

static void lz4_is_used_only_where_it_is_smaller(void **state)
{
    (void)state;
    static const uint32_t ids[4096] = {7};
    static const struct {
        size_t tokens;
        bool lz4;
    } rows[] = {{1, false}, {4096, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_RECORD made, read;
        AUTO_BUFFER bytes = {0};
        struct refusal no;
        record_init(&made);
        assert_true(record_start_trace(&made, ""));
        assert_true(record_append(&made, &prompt_turn, ids, NULL, rows[i].tokens, false));
        assert_true(record_encode(&made, &bytes, &no));
        assert_true(holds(&bytes, "codec\xa3lz4") == rows[i].lz4);
        assert_true(holds(&bytes, "codec\xa3raw") == !rows[i].lz4);
        assert_true(bytes.len < 1000);
        assert_true(record_decode(buffer_peek(&bytes), &read, &no));
        assert_true(traces_equal(&made.traces[0], &read.traces[0]));
    }
}

static void text_that_is_not_utf8_is_repaired_when_said(void **state)
{
    (void)state;
    static const struct {
        struct slice said;
        const char *kept;
    } rows[] = {
        {{(const uint8_t *)"a\xff"
                           "b",
          3},
         "a\xef\xbf\xbd"
         "b"},
        {{(const uint8_t *)"a\0b", 3},
         "a\xef\xbf\xbd"
         "b"},
        {{(const uint8_t *)"\xe2\x82", 2}, "\xef\xbf\xbd\xef\xbf\xbd"},
        {{(const uint8_t *)"\xe2\x82\xac", 3}, "\xe2\x82\xac"},
        {{NULL, 0}, ""},
    };
    AUTO_RECORD record;
    struct refusal no;
    record_init(&record);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(record_say(&record, "user", rows[i].said, "t\xff", 0));
        assert_string_equal(record.messages[i].content, rows[i].kept);
        assert_string_equal(record.messages[i].tool, "t\xef\xbf\xbd");
    }
    assert_true(record_check(&record, &no));
}

/* ---- limits of making -------------------------------------------------------------------- */

static void nothing_is_appended_without_a_trace_or_beyond_the_limits(void **state)
{
    (void)state;
    AUTO_RECORD record;
    record_init(&record);
    AUTO_FREE uint32_t *ids = calloc(RECORD_TOKENS_MAX, sizeof(*ids));
    assert_non_null(ids);
    assert_false(record_append(&record, &prompt_turn, ids, NULL, 1, false));
    assert_true(record_start_trace(&record, ""));
    assert_false(record_append(&record, &prompt_turn, ids, NULL, RECORD_TOKENS_MAX + 1u, false));
    assert_true(record_append(&record, &prompt_turn, ids, NULL, RECORD_TOKENS_MAX - 1u, false));
    assert_true(record_start_trace(&record, ""));
    assert_false(record_append(&record, &prompt_turn, ids, NULL, 2, false));
    assert_true(record_append(&record, &prompt_turn, ids, NULL, 1, false));
    for (size_t turns = 2; turns < RECORD_TURNS_MAX; turns++)
        assert_true(record_append(&record, &prompt_turn, ids, NULL, 0, false));
    assert_false(record_append(&record, &prompt_turn, ids, NULL, 0, false));
    for (size_t traces = 2; traces < RECORD_TRACES_MAX; traces++)
        assert_true(record_start_trace(&record, ""));
    assert_false(record_start_trace(&record, ""));
    for (size_t messages = 0; messages < RECORD_MESSAGES_MAX; messages++)
        assert_true(record_say(&record, "user", slice_from_str(""), NULL, 0));
    assert_false(record_say(&record, "user", slice_from_str(""), NULL, 0));
}

static void the_fullest_record_survives_the_round_trip(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    AUTO_FREE uint32_t *ids = calloc(RECORD_TOKENS_MAX, sizeof(*ids));
    assert_non_null(ids);
    record_init(&made);
    for (size_t i = 0; i < RECORD_TRACES_MAX; i++)
        assert_true(record_start_trace(&made, ""));
    assert_true(record_append(&made, &prompt_turn, ids, NULL, RECORD_TOKENS_MAX, false));
    for (size_t turns = 1; turns < RECORD_TURNS_MAX; turns++)
        assert_true(record_append(&made, &prompt_turn, ids, NULL, 0, false));
    assert_true(record_encode(&made, &bytes, &no));
    assert_true(record_decode(buffer_peek(&bytes), &read, &no));
    assert_int_equal(read.traces[RECORD_TRACES_MAX - 1].token_count, RECORD_TOKENS_MAX);
}

static void a_record_too_long_to_send_is_refused_and_nothing_is_appended(void **state)
{
    (void)state;
    AUTO_RECORD record;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    size_t len = 16 << 20;
    AUTO_FREE char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'a', len);
    record_init(&record);
    for (int i = 0; i < 4; i++)
        assert_true(record_say(&record, "user", slice_of(text, len), NULL, 0));
    assert_true(buffer_append_str(&bytes, "before"));
    assert_false(record_encode(&record, &bytes, &no));
    assert_int_equal(no.reason, REFUSAL_TOO_LARGE);
    assert_true(slice_is(buffer_peek(&bytes), "before"));
}

static void tamper_evidence_is_kept(void **state)
{
    AUTO_RECORD record, read;
    AUTO_BUFFER bytes = {0};
    struct refusal no = {0};
    char longest[400];
    (void)state;
    make_record(&record);
    struct record_tamper *tamper = record_add_tamper(&record);
    assert_non_null(tamper);
    tamper->count = 9;
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + 254, "\xc3\xbc", 2); /* cut in no character */
    longest[399] = '\0';
    assert_true(record_add_touched(tamper, "shell", "usr/bin/ba\xffsh") &&
                record_add_touched(tamper, "loader", longest));
    if (!record_encode(&record, &bytes, &no))
        fail_msg("%s", no.text);
    assert_true(holds(&bytes, "\xa7version\x04"));
    if (!record_decode(buffer_peek(&bytes), &read, &no))
        fail_msg("%s", no.text);
    assert_int_equal(read.tamper->count, 9);
    assert_int_equal(read.tamper->file_count, 2);
    assert_string_equal(read.tamper->files[0].what, "shell");
    assert_string_equal(read.tamper->files[0].path, "usr/bin/ba\xef\xbf\xbdsh");
    assert_int_equal(strlen(read.tamper->files[1].path), 254);
    for (size_t i = 2; i < RECORD_TOUCHED_MAX; i++)
        assert_true(record_add_touched(tamper, "import", "a"));
    assert_false(record_add_touched(tamper, "import", "one too many"));
}

static void break_tamper_count(struct record *r)
{
    struct record_tamper *tamper = record_add_tamper(r);
    assert_true(tamper && record_add_touched(tamper, "shell", "bin/sh"));
}
static void break_tamper_what(struct record *r)
{
    break_tamper_count(r);
    r->tamper->count = 1;
    strcpy(r->tamper->files[0].what, "spoon");
}

/* ---- what a record may not say ---------------------------------------------------------------- */

static void break_agent(struct record *r) { memset(r->agent, 'a', sizeof(r->agent)); }
static void break_digest(struct record *r) { strcpy(r->template_digest, "\xff"); }
static void break_version(struct record *r) { r->version = RECORD_VERSION + 1; }
static void break_role(struct record *r) { strcpy(r->traces[0].turns[1].role, "system"); }
static void break_finish(struct record *r) { strcpy(r->traces[0].turns[1].finish, "eos"); }
static void break_no_finish(struct record *r) { r->traces[0].turns[1].finish[0] = '\0'; }
static void break_finish_of_prompt(struct record *r) { strcpy(r->traces[0].turns[0].finish, "stop"); }
static void break_seconds(struct record *r) { r->traces[0].turns[2].seconds = NAN; }
static void break_queue(struct record *r)
{
    r->traces[0].turns[1].queue_seconds = (struct record_seconds){true, INFINITY};
}
static void break_prefill(struct record *r)
{
    r->traces[0].turns[1].prefill_seconds = (struct record_seconds){true, NAN};
}
static void break_decode(struct record *r) { r->traces[0].turns[1].decode_seconds = (struct record_seconds){true, -1}; }
static void break_gap(struct record *r) { r->traces[0].turns[1].offset = 4; }
static void break_overlap(struct record *r) { r->traces[0].turns[1].offset = 2; }
static void break_beyond(struct record *r) { r->traces[0].turns[1].length = 3; }
static void break_wrap(struct record *r) { r->traces[0].turns[1].length = UINT32_MAX; }
static void break_short(struct record *r) { r->traces[0].turns[1].length = 1; }
static void break_uncovered(struct record *r) { r->traces[1].turn_count = 0; }
static void break_mask(struct record *r) { r->traces[0].mask[3] = 2; }
static void break_mask_of_prompt(struct record *r) { r->traces[0].mask[0] = 1; }
static void break_logprob(struct record *r) { r->traces[0].logprobs[4] = -INFINITY; }
static void break_nan(struct record *r) { r->traces[0].logprobs[4] = NAN; }
static void break_logprob_of_prompt(struct record *r) { r->traces[1].logprobs[2] = -1; }
static void break_trace_template(struct record *r) { strcpy(r->traces[1].template_digest, "\xc3"); }
static void break_trace_tokenizer(struct record *r) { memset(r->traces[1].tokenizer_digest, 'a', 80); }
static void break_tokenizer(struct record *r) { memset(r->tokenizer_digest, 'a', 80); }
static void break_reason(struct record *r) { strcpy(r->traces[1].reason, "\xc3"); }
static void break_message_role(struct record *r) { strcpy(r->messages[0].role, "usr"); }
static void break_content(struct record *r) { strcpy(r->messages[0].content, "\xff"); }
static void break_tool(struct record *r) { strcpy(r->messages[1].tool, "\xff"); }

static void a_record_that_breaks_its_rules_is_neither_checked_nor_sent(void **state)
{
    (void)state;
    static const struct {
        void (*damage)(struct record *);
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {break_agent, REFUSAL_TOO_LARGE, "agent"},
        {break_digest, REFUSAL_NOT_UTF8, "template_digest"},
        {break_version, REFUSAL_TOO_LARGE, "version"},
        {break_tamper_count, REFUSAL_TOO_SMALL, "tamper.count"},
        {break_tamper_what, REFUSAL_WRONG_TYPE, "tamper.files[0].what"},
        {break_role, REFUSAL_WRONG_TYPE, "traces[0].turns[1].role"},
        {break_finish, REFUSAL_WRONG_TYPE, "traces[0].turns[1].finish"},
        {break_no_finish, REFUSAL_WRONG_TYPE, "traces[0].turns[1].finish"},
        {break_finish_of_prompt, REFUSAL_WRONG_TYPE, "traces[0].turns[0].finish"},
        {break_seconds, REFUSAL_NOT_FINITE, "traces[0].turns[2].seconds"},
        {break_queue, REFUSAL_NOT_FINITE, "traces[0].turns[1].queue_seconds"},
        {break_prefill, REFUSAL_NOT_FINITE, "traces[0].turns[1].prefill_seconds"},
        {break_decode, REFUSAL_NOT_FINITE, "traces[0].turns[1].decode_seconds"},
        {break_gap, REFUSAL_WRONG_TYPE, "traces[0].turns[1].offset"},
        {break_overlap, REFUSAL_WRONG_TYPE, "traces[0].turns[1].offset"},
        {break_beyond, REFUSAL_WRONG_TYPE, "traces[0].turns[1].offset"},
        {break_wrap, REFUSAL_WRONG_TYPE, "traces[0].turns[1].offset"},
        {break_short, REFUSAL_WRONG_TYPE, "traces[0].turns[2].offset"},
        {break_uncovered, REFUSAL_TOO_SMALL, "traces[1].turns"},
        {break_mask, REFUSAL_TOO_LARGE, "traces[0].mask"},
        {break_mask_of_prompt, REFUSAL_TOO_LARGE, "traces[0].mask"},
        {break_logprob, REFUSAL_NOT_FINITE, "traces[0].logprobs"},
        {break_nan, REFUSAL_NOT_FINITE, "traces[0].logprobs"},
        {break_logprob_of_prompt, REFUSAL_TOO_LARGE, "traces[1].logprobs"},
        {break_trace_template, REFUSAL_NOT_UTF8, "traces[1].template_digest"},
        {break_trace_tokenizer, REFUSAL_TOO_LARGE, "traces[1].tokenizer_digest"},
        {break_tokenizer, REFUSAL_TOO_LARGE, "tokenizer_digest"},
        {break_reason, REFUSAL_NOT_UTF8, "traces[1].reason"},
        {break_message_role, REFUSAL_WRONG_TYPE, "messages[0].role"},
        {break_content, REFUSAL_NOT_UTF8, "messages[0].content"},
        {break_tool, REFUSAL_NOT_UTF8, "messages[1].tool"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_RECORD record;
        AUTO_BUFFER bytes = {0};
        struct refusal no = {0};
        make_record(&record);
        rows[i].damage(&record);
        assert_false(record_check(&record, &no));
        assert_string_equal(no.field, rows[i].field);
        assert_int_equal(no.reason, rows[i].reason);
        assert_false(record_encode(&record, &bytes, &no));
        assert_int_equal(bytes.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tamper_evidence_is_kept),
        cmocka_unit_test(a_record_survives_the_round_trip),
        cmocka_unit_test(what_was_noted_survives_the_round_trip_and_is_bounded_and_checked),
        cmocka_unit_test(what_the_engine_does_not_tell_takes_no_bytes),
        cmocka_unit_test(an_empty_record_and_an_empty_trace_survive_it_too),
        cmocka_unit_test(what_was_read_can_be_appended_to),
        cmocka_unit_test(lz4_is_used_only_where_it_is_smaller),
        cmocka_unit_test(text_that_is_not_utf8_is_repaired_when_said),
        cmocka_unit_test(nothing_is_appended_without_a_trace_or_beyond_the_limits),
        cmocka_unit_test(the_fullest_record_survives_the_round_trip),
        cmocka_unit_test(a_record_too_long_to_send_is_refused_and_nothing_is_appended),
        cmocka_unit_test(a_record_that_breaks_its_rules_is_neither_checked_nor_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
