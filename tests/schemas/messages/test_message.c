#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "schemas/messages/example.h"
#include "tests/schemas/messages/message_craft.h"

static void make_golden(enum message_id id, struct buffer *out)
{
    struct refusal no;
    buffer_clear(out);
    if (!message_example(id, out, &no))
        fail_msg("%s", no.text);
}

/* ---- the examples ------------------------------------------------------------------ */

static void append_hex(struct buffer *out, const char *hex)
{
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        assert_true(buffer_append(out, &(uint8_t){(uint8_t)byte}, 1));
}

static void every_example_has_the_bytes_in_messages_json(void **state)
{
    (void)state;
    char path[4096];
    json_error_t error;
    assert_non_null(getenv("SLUICE_SOURCE_DIR"));
    snprintf(path, sizeof(path), "%s/schemas/messages.json", getenv("SLUICE_SOURCE_DIR"));
    json_t *json = json_load_file(path, JSON_DECODE_INT_AS_REAL, &error); /* 2^64 - 1 is a bound */
    assert_non_null(json);
    json_t *messages = json_object_get(json, "messages");
    assert_int_equal(json_array_size(messages), MESSAGE_COUNT);
    for
        EACH_MESSAGE(id) {
            json_t *message = json_array_get(messages, id);
            AUTO_BUFFER made = {0}, wanted = {0};
            make_golden(id, &made);
            append_hex(&wanted, json_string_value(json_object_get(message, "golden")));
            assert_string_equal(json_string_value(json_object_get(message, "wire")), message_get(id)->wire);
            assert_true(slice_equal(buffer_peek(&made), buffer_peek(&wanted)));
        }
    json_decref(json);
}

static void every_message_survives_the_round_trip(void **state)
{
    (void)state;
    for
        EACH_MESSAGE(id) {
            AUTO_BUFFER golden = {0}, again = {0};
            union any_message any;
            enum message_id peeked;
            make_golden(id, &golden);
            assert_true(message_peek(buffer_peek(&golden), &peeked, NULL));
            assert_int_equal(peeked, id);
            assert_true(message_decode(id, buffer_peek(&golden), &any, NULL));
            assert_true(message_encode(id, &any, &again, NULL));
            assert_true(slice_equal(buffer_peek(&golden), buffer_peek(&again)));
        }
}

static bool is_zero(const void *data, size_t len)
{
    const uint8_t *bytes = data;
    while (len && bytes[len - 1] == 0)
        len--;
    return len == 0;
}

/* A copy of just these bytes, so that the sanitizer sees a read beyond them. */
static uint8_t *exact_copy(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, data, len);
    return copy;
}

static void every_message_cut_short_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    for
        EACH_MESSAGE(id) {
            AUTO_BUFFER golden = {0};
            make_golden(id, &golden);
            for (size_t len = 0; len < golden.len; len++) {
                AUTO_FREE uint8_t *cut = exact_copy(golden.data, len);
                union any_message any;
                struct refusal no = {0};
                memset(&any, 0xa5, sizeof(any));
                assert_false(message_decode(id, slice_of(cut, len), &any, &no));
                assert_true(no.reason == REFUSAL_MALFORMED || no.reason == REFUSAL_WRONG_TYPE);
                assert_true(is_zero(&any, message_get(id)->size));
            }
        }
}

static void a_message_with_any_one_byte_damaged_is_refused_or_can_be_sent_on(void **state)
{
    (void)state;
    size_t refused = 0, taken = 0;
    for
        EACH_MESSAGE(id) {
            AUTO_BUFFER golden = {0}, again = {0};
            make_golden(id, &golden);
            AUTO_FREE uint8_t *bytes = exact_copy(golden.data, golden.len);
            for (size_t at = 0; at < golden.len; at++)
                for (unsigned flip = 1; flip < 256; flip++) {
                    union any_message any;
                    struct refusal no = {0};
                    bytes[at] = golden.data[at] ^ (uint8_t)flip;
                    bool good = message_decode(id, slice_of(bytes, golden.len), &any, &no);
                    good ? taken++ : refused++;
                    assert_true(good == (no.reason == REFUSAL_NONE));
                    buffer_clear(&again);
                    if (good)
                        assert_true(message_encode(id, &any, &again, &no));
                    bytes[at] = golden.data[at];
                }
        }
    assert_true(refused > 1000 && taken > 1000);
}

/* ---- the whole at fault --------------------------------------------------------------------- */

static void bytes_after_a_message_are_refused(void **state)
{
    (void)state;
    for
        EACH_MESSAGE(id) {
            AUTO_BUFFER bytes = {0};
            union any_message any;
            struct refusal no;
            make_golden(id, &bytes);
            assert_true(buffer_append(&bytes, "\xc0", 1));
            assert_false(message_decode(id, buffer_peek(&bytes), &any, &no));
            assert_int_equal(no.reason, REFUSAL_MALFORMED);
        }
}

static void a_message_of_no_known_name_is_refused(void **state)
{
    (void)state;
    enum message_id id;
    struct refusal no;
    assert_false(message_peek(slice_of("\xa5tools\x80", 7), &id, &no));
    assert_int_equal(no.reason, REFUSAL_UNKNOWN_MESSAGE);
    assert_non_null(strstr(no.text, "'tools'"));
    assert_false(message_peek(slice_of(NULL, 0), &id, &no));
    assert_int_equal(no.reason, REFUSAL_MALFORMED);
    assert_false(message_peek(slice_of("\x07", 1), &id, &no));
    assert_int_equal(no.reason, REFUSAL_MALFORMED);
}

static void a_message_read_as_another_is_refused(void **state)
{
    (void)state;
    AUTO_BUFFER bytes = {0};
    union any_message any;
    struct refusal no;
    make_golden(MSG_done, &bytes);
    assert_false(message_decode(MSG_refused, buffer_peek(&bytes), &any, &no));
    assert_int_equal(no.reason, REFUSAL_MALFORMED);
}

/* A beat whose last field, jobs, is `repeat` copies of `with`. */
static void assert_bomb_refused(struct slice head, const char *with, size_t repeat)
{
    AUTO_BUFFER bytes = {0};
    union any_message any;
    struct refusal no;
    const struct message *message = message_get(MSG_worker_beat);
    struct flaw none = {.field = &message->fields[message->field_count - 1], .times = 0};
    msgpack_packer packer;
    pack_faulty(message, &none, 1, &bytes);
    packer_init(&packer, &bytes);
    packer_str(&packer, slice_from_str("jobs"));
    buffer_append(&bytes, head.data, head.len);
    while (repeat--)
        buffer_append(&bytes, with, 1);
    assert_false(bytes.failed);
    assert_false(message_decode(MSG_worker_beat, buffer_peek(&bytes), &any, &no));
    assert_int_equal(no.reason, REFUSAL_WRONG_TYPE);
    assert_string_equal(no.field, "jobs");
}

static void nesting_and_counts_that_lie_are_refused_without_being_believed(void **state)
{
    (void)state;
    assert_bomb_refused(slice_of("", 0), "\x91", 1000000);
    assert_bomb_refused(slice_of("", 0), "\x81", 1000000);
    assert_bomb_refused(slice_of("\xdd\xff\xff\xff\xff", 5), "\x92", 1000);
    assert_bomb_refused(slice_of("\xdf\xff\xff\xff\xff", 5), "\xc0", 1000);
    assert_bomb_refused(slice_of("\x91\x92\xdb\xff\xff\xff\xff", 7), "a", 1000);
    assert_bomb_refused(slice_of("\xc9\xff\xff\xff\xff\x01", 6), "a", 1000);
}

/* ---- what is sent ------------------------------------------------------------------------------ */

static void what_breaks_the_schema_is_not_sent_and_nothing_is_appended(void **state)
{
    (void)state;
    AUTO_BUFFER out = {0};
    struct refusal no;
    struct msg_group_submit submit = {.tag = 1,
                                      .group = slice_from_str("g"),
                                      .stream = slice_from_str("s"),
                                      .samples = 2000,
                                      .task = slice_from_str("{}")};
    assert_true(buffer_append_str(&out, "before"));
    assert_false(message_encode(MSG_group_submit, &submit, &out, &no));
    assert_int_equal(no.reason, REFUSAL_TOO_LARGE);
    assert_string_equal(no.field, "samples");
    submit.samples = 2;
    submit.group = slice_of("\xff", 1);
    assert_false(message_encode(MSG_group_submit, &submit, &out, &no));
    assert_int_equal(no.reason, REFUSAL_NOT_UTF8);
    struct msg_job_result result = {.worker = submit.stream,
                                    .job = submit.stream,
                                    .token = 1,
                                    .outcome = submit.stream,
                                    .reward = NAN,
                                    .has_reward = true};
    assert_false(message_encode(MSG_job_result, &result, &out, &no));
    assert_int_equal(no.reason, REFUSAL_NOT_FINITE);
    assert_true(slice_is(buffer_peek(&out), "before"));
}

static struct msg_worker_beat beat_with(struct slice packed, uint32_t count)
{
    struct slice word = slice_from_str("w");
    return (struct msg_worker_beat){
        .worker = word, .stage = word, .slots = 1, .lane = word, .host = word, .jobs = {packed, count}};
}

static void jobs_come_out_as_they_went_in(void **state)
{
    (void)state;
    AUTO_BUFFER packed = {0}, out = {0};
    struct job_ref ref;
    size_t at = 0;
    for (uint64_t i = 0; i < 70; i++)
        assert_true(jobs_append(&packed, slice_from_str("run:g/1"), i << 32));
    struct msg_worker_beat beat = beat_with(buffer_peek(&packed), 70), read;
    assert_true(message_encode(MSG_worker_beat, &beat, &out, NULL));
    assert_true(message_decode(MSG_worker_beat, buffer_peek(&out), &read, NULL));
    assert_int_equal(read.jobs.count, 70);
    for (uint64_t i = 0; i < 70; i++) {
        assert_true(jobs_next(&read.jobs, &at, &ref));
        assert_true(slice_is(ref.job, "run:g/1") && ref.token == i << 32);
    }
    assert_false(jobs_next(&read.jobs, &at, &ref));
}

static void a_count_of_jobs_that_is_not_what_was_packed_is_not_sent(void **state)
{
    (void)state;
    AUTO_BUFFER packed = {0}, out = {0};
    struct refusal no;
    assert_true(jobs_append(&packed, slice_from_str("run:g/1"), 7));
    for (uint32_t count = 0; count < 4; count++) {
        struct msg_worker_beat beat = beat_with(buffer_peek(&packed), count);
        bool sent = message_encode(MSG_worker_beat, &beat, &out, &no);
        assert_true(sent == (count == 1));
        if (!sent)
            assert_string_equal(no.field, "jobs");
    }
}

/* ---- words ---------------------------------------------------------------------------------------- */

static void every_word_is_parsed_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OUTCOME_COUNT; i++) {
        enum outcome outcome = OUTCOME_COUNT;
        assert_true(outcome_parse(slice_from_str(outcome_wire((enum outcome)i)), &outcome));
        assert_int_equal(outcome, i);
    }
    for (unsigned i = 0; i < STAGE_COUNT; i++) {
        enum stage stage = STAGE_COUNT;
        assert_true(stage_parse(slice_from_str(stage_wire((enum stage)i)), &stage));
        assert_int_equal(stage, i);
    }
    assert_false(outcome_parse(slice_from_str("okay"), &(enum outcome){0}));
    assert_false(stage_parse(slice_from_str(""), &(enum stage){0}));
    assert_true(outcome_is_trainable(OUTCOME_OK) && outcome_is_trainable(OUTCOME_AGENT));
    assert_false(outcome_is_trainable(OUTCOME_INFRA) || outcome_is_trainable(OUTCOME_TASK) ||
                 outcome_is_trainable(OUTCOME_CANCELLED));
}

static void names_have_no_slash_blank_or_control_character(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "add-17", "gr\xc3\xbc\xc3\x9f", "A.b:c_d"};
    static const char *const bad[] = {"", "a/b", "a b", "a\tb", "a\x7f", "\xff", "a\n"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(name_is_valid(slice_from_str(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(name_is_valid(slice_from_str(bad[i])));
    assert_false(name_is_valid(slice_of("a\0b", 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_has_the_bytes_in_messages_json),
        cmocka_unit_test(every_message_survives_the_round_trip),
        cmocka_unit_test(every_message_cut_short_is_refused_and_leaves_nothing),
        cmocka_unit_test(a_message_with_any_one_byte_damaged_is_refused_or_can_be_sent_on),
        cmocka_unit_test(bytes_after_a_message_are_refused),
        cmocka_unit_test(a_message_of_no_known_name_is_refused),
        cmocka_unit_test(a_message_read_as_another_is_refused),
        cmocka_unit_test(nesting_and_counts_that_lie_are_refused_without_being_believed),
        cmocka_unit_test(what_breaks_the_schema_is_not_sent_and_nothing_is_appended),
        cmocka_unit_test(jobs_come_out_as_they_went_in),
        cmocka_unit_test(a_count_of_jobs_that_is_not_what_was_packed_is_not_sent),
        cmocka_unit_test(every_word_is_parsed_back),
        cmocka_unit_test(names_have_no_slash_blank_or_control_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
