#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/cleanup.h"
#include "schemas/reader.h"
#include "schemas/trajectory_wire.h"

#define AUTO_RECORD __attribute__((cleanup(record_finish))) struct record

static const struct record_turn prompt_turn = {.role = "prompt"};
static const struct record_turn said_turn = {.role = "assistant",
                                             .finish = "stop",
                                             .engine = "http://127.0.0.1:8080",
                                             .version = "step-7",
                                             .prompt_tokens = 3,
                                             .cached_tokens = 1,
                                             .seconds = 0.25};

/* Two traces, three turns, an empty one, and messages with and without a tool. */
static void make_record(struct record *record)
{
    static const uint32_t ids[] = {101, 102, 103, 4294967295u};
    static const float logprobs[] = {-0.5f, -0.25f};
    record_init(record);
    strcpy(record->agent, "bash");
    strcpy(record->template_digest, "sha256:9f86d081884c7d65");
    strcpy(record->logprobs_mode, "raw");
    assert_true(record_start_trace(record, ""));
    assert_true(record_append(record, &prompt_turn, ids, NULL, 3, false));
    assert_true(record_append(record, &said_turn, ids + 2, logprobs, 2, true));
    assert_true(record_append(record, &(struct record_turn){.role = "tool", .seconds = 1.5}, NULL,
                              NULL, 0, false));
    assert_true(record_start_trace(record, "the template moved"));
    assert_true(record_append(record, &prompt_turn, ids, NULL, 4, false));
    assert_true(record_say(record, "user", slice_from_str("1+1?"), NULL, 0));
    assert_true(record_say(record, "tool", slice_from_str("gr\xc3\xbc\xc3\x9f"), "bash: ls -l", -9));
}

static void make_bytes(struct buffer *out)
{
    AUTO_RECORD record;
    struct refusal no = {0};
    make_record(&record);
    if (!record_encode(&record, out, &no))
        fail_msg("%s", no.text);
}

static bool traces_equal(const struct record_trace *a, const struct record_trace *b)
{
    size_t count = a->token_count;
    return count == b->token_count && a->turn_count == b->turn_count &&
           strcmp(a->reason, b->reason) == 0 &&
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
    assert_string_equal(read.template_digest, "sha256:9f86d081884c7d65");
    assert_string_equal(read.logprobs_mode, "raw");
    assert_int_equal(read.trace_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(traces_equal(&made.traces[i], &read.traces[i]));
    assert_int_equal(read.traces[0].turns[1].offset, 3);
    assert_int_equal(read.traces[0].turns[1].length, 2);
    assert_int_equal(read.message_count, 2);
    assert_null(read.messages[0].tool);
    assert_string_equal(read.messages[1].tool, "bash: ls -l");
    assert_string_equal(read.messages[1].content, "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(read.messages[1].exit_status, -9);
    assert_true(record_encode(&read, &again, &no));
    assert_true(slice_equal(buffer_peek(&bytes), buffer_peek(&again)));
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

static bool holds(const struct buffer *bytes, const char *text)
{
    return memmem(bytes->data, bytes->len, text, strlen(text)) != NULL;
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
        {{(const uint8_t *)"a\xff" "b", 3}, "a\xef\xbf\xbd" "b"},
        {{(const uint8_t *)"a\0b", 3}, "a\xef\xbf\xbd" "b"},
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

/* ---- what a record may not say ---------------------------------------------------------------- */

static void break_agent(struct record *r) { memset(r->agent, 'a', sizeof(r->agent)); }
static void break_digest(struct record *r) { strcpy(r->template_digest, "\xff"); }
static void break_version(struct record *r) { r->version = 2; }
static void break_role(struct record *r) { strcpy(r->traces[0].turns[1].role, "user"); }
static void break_finish(struct record *r) { strcpy(r->traces[0].turns[1].finish, "eos"); }
static void break_no_finish(struct record *r) { r->traces[0].turns[1].finish[0] = '\0'; }
static void break_finish_of_prompt(struct record *r) { strcpy(r->traces[0].turns[0].finish, "stop"); }
static void break_seconds(struct record *r) { r->traces[0].turns[2].seconds = NAN; }
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
        {break_role, REFUSAL_WRONG_TYPE, "traces[0].turns[1].role"},
        {break_finish, REFUSAL_WRONG_TYPE, "traces[0].turns[1].finish"},
        {break_no_finish, REFUSAL_WRONG_TYPE, "traces[0].turns[1].finish"},
        {break_finish_of_prompt, REFUSAL_WRONG_TYPE, "traces[0].turns[0].finish"},
        {break_seconds, REFUSAL_NOT_FINITE, "traces[0].turns[2].seconds"},
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

/* ---- bytes at fault ------------------------------------------------------------------------------ */

static bool decodes(struct slice bytes, struct refusal *no)
{
    AUTO_RECORD record;
    AUTO_FREE uint8_t *copy = malloc(bytes.len ? bytes.len : 1); /* for the sanitizer */
    assert_non_null(copy);
    memcpy(copy, bytes.len ? bytes.data : (const uint8_t *)"", bytes.len);
    *no = (struct refusal){0};
    bool good = record_decode(slice_of(copy, bytes.len), &record, no);
    assert_true(good == (no->reason == REFUSAL_NONE));
    return good;
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    make_bytes(&bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        assert_false(decodes(slice_of(bytes.data, len), &no));
        assert_true(no.reason == REFUSAL_MALFORMED || no.reason == REFUSAL_WRONG_TYPE);
    }
}

static void any_one_byte_damaged_is_refused_or_read(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    size_t refused = 0, taken = 0;
    make_bytes(&bytes);
    for (size_t at = 0; at < bytes.len; at++)
        for (unsigned flip = 1; flip < 256; flip += flip < 32 ? 1 : 37) {
            bytes.data[at] ^= (uint8_t)flip;
            decodes(buffer_peek(&bytes), &no) ? taken++ : refused++;
            bytes.data[at] ^= (uint8_t)flip;
        }
    assert_true(refused > 10000 && taken > 1000);
}

/* The encoded record with one run of bytes put in another's place. */
static void swap(struct buffer *bytes, struct slice from, struct slice to)
{
    uint8_t *at = memmem(bytes->data, bytes->len, from.data, from.len);
    assert_non_null(at);
    AUTO_BUFFER tail = {0};
    size_t head = (size_t)(at - bytes->data);
    buffer_append(&tail, at + from.len, bytes->len - head - from.len);
    bytes->len = head;
    assert_true(buffer_append(bytes, to.data, to.len));
    assert_true(buffer_append(bytes, tail.data, tail.len));
}

#define BYTES(literal) {(const uint8_t *)literal, sizeof(literal) - 1}

static void bytes_that_lie_are_refused_by_place_and_reason(void **state)
{
    (void)state;
    static const struct {
        struct slice from, to;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {BYTES("\xa7version\x01"), BYTES("\xa7version\x02"), REFUSAL_TOO_LARGE, "version"},
        {BYTES("\xa7version\x01"), BYTES("\xa7version\x00"), REFUSAL_TOO_SMALL, "version"},
        {BYTES("\xa7version\x01"), BYTES("\xa7version\xa1" "1"), REFUSAL_WRONG_TYPE, "version"},
        {BYTES("\xa5" "agent"), BYTES("\xa5" "agenx"), REFUSAL_UNKNOWN_FIELD, ""},
        {BYTES("\x86\xa7version"), BYTES("\x85\xa7version"), REFUSAL_MISSING_FIELD, "messages"},
        {BYTES("\x86\xa7version\x01"), BYTES("\x87\xa7version\x01\xa7version\x01"),
         REFUSAL_DUPLICATE_FIELD, "version"},
        {BYTES("\xa6traces\x92"), BYTES("\xa6traces\xdd\xff\xff\xff\xff"), REFUSAL_TOO_LARGE, "traces"},
        {BYTES("\xa6traces\x92"), BYTES("\xa6traces\x91"), REFUSAL_MALFORMED, ""},
        {BYTES("\xa6traces\x92"), BYTES("\xa6traces\xc0"), REFUSAL_WRONG_TYPE, "traces"},
        {BYTES("\xa5turns\x93"), BYTES("\xa5turns\xdd\xff\xff\xff\xff"), REFUSAL_TOO_LARGE, "traces[0].turns"},
        {BYTES("\xa8messages\x92"), BYTES("\xa8messages\xdf\xff\xff\xff\xff"), REFUSAL_WRONG_TYPE, "messages"},
        {BYTES("codec\xa3raw"), BYTES("codec\xa3zip"), REFUSAL_WRONG_TYPE, "traces[0].token_ids"},
        {BYTES("codec\xa3raw"), BYTES("codec\xa3lz4"), REFUSAL_MALFORMED, "traces[0].token_ids"},
        {BYTES("codec\xa3raw"), BYTES("codec\xa8rawrawra"), REFUSAL_TOO_LARGE, "traces[0].token_ids.codec"},
        {BYTES("\xa6length\x14\xa4" "data"), BYTES("\xa6length\x15\xa4" "data"), REFUSAL_WRONG_TYPE, "traces[0].token_ids"},
        {BYTES("\xa6length\x14\xa4" "data"), BYTES("\xa6length\x10\xa4" "data"), REFUSAL_MALFORMED, "traces[0].token_ids"},
        {BYTES("\xa3raw\xa6length\x14\xa4" "data"), BYTES("\xa3lz4\xa6length\xce\xff\xff\xff\xfc\xa4" "data"),
         REFUSAL_MALFORMED, "traces[0].token_ids"},
        {BYTES("\xa6length\x14\xa4" "data"), BYTES("\xa6length\xcf\0\0\0\1\0\0\0\x14\xa4" "data"),
         REFUSAL_TOO_LARGE, "traces[0].token_ids.length"},
        {BYTES("\xa6length\x05\xa4" "data\xc4\x05\0\0\0\1\1"), BYTES("\xa6length\x04\xa4" "data\xc4\x04\0\0\0\1"),
         REFUSAL_WRONG_TYPE, "traces[0].mask"},
        {BYTES("\xa4role\xa6prompt"), BYTES("\xa4role\xaf" "prompt prompt p"), REFUSAL_WRONG_TYPE, "traces[0].turns[0].role"},
        {BYTES("\xa4role\xa6prompt"), BYTES("\xa4role\xb0" "prompt prompt pr"), REFUSAL_TOO_LARGE, "traces[0].turns[0].role"},
        {BYTES("\xa4" "1+1?"), BYTES("\xa4" "1+1\xff"), REFUSAL_NOT_UTF8, "messages[0].content"},
        {BYTES("\xa4" "1+1?"), BYTES("\xa4" "1+1\0"), REFUSAL_NOT_UTF8, "messages[0].content"},
        {BYTES("\xab" "exit_status\xf7"), BYTES("\xab" "exit_status\xcf\0\0\0\1\0\0\0\0"), REFUSAL_TOO_LARGE, "messages[1].exit_status"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUFFER bytes = {0};
        struct refusal no;
        make_bytes(&bytes);
        swap(&bytes, rows[i].from, rows[i].to);
        if (decodes(buffer_peek(&bytes), &no) || no.reason != rows[i].reason ||
            strcmp(no.field, rows[i].field) != 0)
            fail_msg("row %zu: %s [%s] %s", i, refusal_wire(no.reason), no.field, no.text);
    }
}

static void bytes_after_a_record_are_refused(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    struct refusal no;
    make_bytes(&bytes);
    assert_true(buffer_append(&bytes, "\xc0", 1));
    assert_false(decodes(buffer_peek(&bytes), &no));
    assert_int_equal(no.reason, REFUSAL_MALFORMED);
}

static void nesting_is_refused_where_it_begins(void **state)
{
    (void)state;
    static const char *const nests[] = {"\x91", "\x81", "\x81\xa6traces", "\x81\xa6traces\x91"};
    for (size_t i = 0; i < sizeof(nests) / sizeof(nests[0]); i++) {
        AUTO_BUFFER bytes = {0};
        struct refusal no;
        for (size_t n = 0; n < 100000; n++)
            buffer_append_str(&bytes, nests[i]);
        assert_false(decodes(buffer_peek(&bytes), &no));
        assert_true(strlen(no.field) < sizeof("traces[0].traces"));
    }
}

/* An LZ4 block of zeros that unpacks to `length` bytes, in about length / 255 of them. */
static void pack_zeros(struct buffer *out, uint32_t length)
{
    size_t rest = length - 1 - 4 - 15 - 5;
    buffer_append(out, "\x1f\0\1\0", 4);
    for (; rest >= 255; rest -= 255)
        buffer_append(out, "\xff", 1);
    buffer_append(out, &(uint8_t){(uint8_t)rest}, 1);
    assert_true(buffer_append(out, "\x50\0\0\0\0\0", 6));
}

static void pack_column(msgpack_packer *packer, const char *key, uint32_t length, struct slice data)
{
    packer_str(packer, slice_from_str(key));
    msgpack_pack_map(packer, 3);
    packer_str(packer, slice_from_str("codec"));
    packer_str(packer, slice_from_str("lz4"));
    packer_str(packer, slice_from_str("length"));
    msgpack_pack_uint32(packer, length);
    packer_str(packer, slice_from_str("data"));
    packer_bin(packer, data);
}

static void tokens_are_counted_over_all_traces_before_they_are_held(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0}, four = {0}, one = {0};
    struct refusal no;
    uint32_t count = RECORD_TOKENS_MAX / 2;
    msgpack_packer packer;
    pack_zeros(&four, count * 4);
    pack_zeros(&one, count);
    packer_init(&packer, &bytes);
    msgpack_pack_map(&packer, 1);
    packer_str(&packer, slice_from_str("traces"));
    msgpack_pack_array(&packer, 3);
    for (int trace = 0; trace < 3; trace++) {
        msgpack_pack_map(&packer, 5);
        packer_str(&packer, slice_from_str("turns"));
        msgpack_pack_array(&packer, 0);
        packer_str(&packer, slice_from_str("reason"));
        packer_str(&packer, slice_from_str(""));
        pack_column(&packer, "token_ids", count * 4, buffer_peek(&four));
        pack_column(&packer, "mask", count, buffer_peek(&one));
        pack_column(&packer, "logprobs", count * 4, buffer_peek(&four));
    }
    assert_false(bytes.failed);
    assert_false(decodes(buffer_peek(&bytes), &no));
    assert_int_equal(no.reason, REFUSAL_TOO_LARGE);
    assert_string_equal(no.field, "traces[2].token_ids");
}

/* ---- the page -------------------------------------------------------------------------------------- */

static char *take_page(void)
{
    char path[4096];
    struct buffer page = {0};
    assert_non_null(getenv("SLUICE_SOURCE_DIR"));
    snprintf(path, sizeof(path), "%s/docs/trajectory.md", getenv("SLUICE_SOURCE_DIR"));
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_non_null(file);
    uint8_t *room = buffer_reserve(&page, 65536);
    assert_non_null(room);
    page.len = fread(room, 1, 65536, file);
    return buffer_take_str(&page);
}

static void the_page_names_every_key(void **state)
{
    (void)state;
    AUTO_FREE char *page = take_page();
    for (unsigned id = 0; id < RECORD_MAP_COUNT; id++)
        for (size_t i = 0; i < record_map_get((enum record_map_id)id)->field_count; i++) {
            char row[64];
            snprintf(row, sizeof(row), "\n| `%s` | ",
                     record_map_get((enum record_map_id)id)->fields[i].key);
            assert_non_null(strstr(page, row));
        }
}

/* The page's program, then `main`, as python reads it. */
static void make_script(struct buffer *out, const char *main)
{
    AUTO_FREE char *page = take_page();
    char *start = strstr(page, "```python\n");
    assert_non_null(start);
    start += strlen("```python\n");
    char *end = strstr(start, "```");
    assert_non_null(end);
    buffer_append(out, start, (size_t)(end - start));
    assert_true(buffer_append_str(out, main) && buffer_append(out, "", 1));
}

/* Runs `script` with the record's bytes on its input; its first line of output. */
static void run_script(const struct buffer *script, const struct buffer *record, char *line,
                       int size)
{
    char path[] = "/tmp/sluice-record-XXXXXX", redirected[64];
    AUTO_CLOSE int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, record->data, record->len), (ssize_t)record->len);
    setenv("SLUICE_SCRIPT", (const char *)script->data, 1);
    snprintf(redirected, sizeof(redirected), "/usr/bin/python3 -c \"$SLUICE_SCRIPT\" <%s", path);
    FILE *pipe = popen(redirected, "r");
    assert_non_null(pipe);
    bool read = fgets(line, size, pipe) != NULL;
    int status = pclose(pipe);
    unlink(path);
    assert_true(read && status == 0);
}

static void the_numpy_program_on_the_page_reads_a_record(void **state)
{
    (void)state;
    AUTO_BUFFER script = {0}, raw = {0}, packed = {0};
    AUTO_RECORD record;
    struct refusal no;
    char line[256];
    make_script(&script, "import sys\n"
                         "b = sys.stdin.buffer.read()\n"
                         "print([i.tolist() for i, *_ in read(b)], mean_logprob(b))\n");
    make_bytes(&raw);
    run_script(&script, &raw, line, sizeof(line));
    assert_string_equal(line, "[[101, 102, 103, 103, 4294967295], [101, 102, 103, 4294967295]] "
                              "-0.375\n");

    uint32_t ids[3000] = {0};
    float logprobs[3000];
    for (size_t i = 0; i < 3000; i++)
        logprobs[i] = -2;
    script.len = 0;
    make_script(&script, "import sys\n"
                         "b = sys.stdin.buffer.read()\n"
                         "print([i.size for i, *_ in read(b)], mean_logprob(b))\n");
    record_init(&record);
    assert_true(record_start_trace(&record, ""));
    assert_true(record_append(&record, &prompt_turn, ids, NULL, 3000, false));
    assert_true(record_append(&record, &said_turn, ids, logprobs, 3000, true));
    assert_true(record_encode(&record, &packed, &no) && holds(&packed, "codec\xa3lz4"));
    run_script(&script, &packed, line, sizeof(line));
    assert_string_equal(line, "[6000] -2.0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_survives_the_round_trip),
        cmocka_unit_test(an_empty_record_and_an_empty_trace_survive_it_too),
        cmocka_unit_test(what_was_read_can_be_appended_to),
        cmocka_unit_test(lz4_is_used_only_where_it_is_smaller),
        cmocka_unit_test(text_that_is_not_utf8_is_repaired_when_said),
        cmocka_unit_test(nothing_is_appended_without_a_trace_or_beyond_the_limits),
        cmocka_unit_test(the_fullest_record_survives_the_round_trip),
        cmocka_unit_test(a_record_too_long_to_send_is_refused_and_nothing_is_appended),
        cmocka_unit_test(a_record_that_breaks_its_rules_is_neither_checked_nor_sent),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(any_one_byte_damaged_is_refused_or_read),
        cmocka_unit_test(bytes_that_lie_are_refused_by_place_and_reason),
        cmocka_unit_test(bytes_after_a_record_are_refused),
        cmocka_unit_test(nesting_is_refused_where_it_begins),
        cmocka_unit_test(tokens_are_counted_over_all_traces_before_they_are_held),
        cmocka_unit_test(the_page_names_every_key),
        cmocka_unit_test(the_numpy_program_on_the_page_reads_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
