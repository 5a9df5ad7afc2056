/* A record's columns by name, spans of versions and sampling parameters: kept, and refused where they make no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/schemas/trajectory/sample_record.h"

/* A trace of three given and four sampled tokens, with a column of each form. */
static void make_rich(struct record *record)
{
    static const uint32_t ids[7] = {1, 2, 3, 4, 5, 6, 7};
    static const float logprobs[7] = {0, 0, 0, -1, -1, -1, -1};
    static const uint16_t halves[7] = {0x3c00};
    static const uint8_t experts[6 * 4] = {9, 8, 7};
    static const uint32_t counts[2] = {1, 2}, kept[3] = {4, 5, 6};
    struct record_sampling sampling = {.temperature = 0.7, .top_p = 0.9, .top_k = 40, .max_tokens = 64, .seed = 12};
    struct record_span spans[] = {{0, 1, "v7"}, {1, 3, "v8"}};
    struct record_turn turn = said_turn;
    turn.sampling = &sampling;
    turn.versions = spans;
    turn.version_count = 2;
    record_init(record);
    strcpy(record->end, "done");
    record->truncated = true;
    record->attempt = 3;
    assert_true(record_start_trace(record, ""));
    assert_true(record_append(record, &prompt_turn, ids, NULL, 3, false));
    assert_true(record_append(record, &turn, ids + 3, logprobs + 3, 4, true));
    const struct record_extra columns[] = {
        {"routed_experts", "u8", 0, 6, {2, {2, 2}}, {0}, {(void *)experts, sizeof(experts)}},
        {"kept_ids", "u32", 3, 2, {0}, {(void *)counts, sizeof(counts)}, {(void *)kept, sizeof(kept)}},
        {"teacher_logprobs", "f32", 0, 7, {0}, {0}, {(void *)logprobs, sizeof(logprobs)}},
        {"halves", "f16", 0, 7, {0}, {0}, {(void *)halves, sizeof(halves)}}};
    for (size_t i = 0; i < 4; i++)
        assert_true(record_add_column(&record->traces[0], &columns[i]));
    assert_true(record_say(record, "assistant", slice_from_str("an example"), NULL, 0));
    assert_true(record_say_sampled(record, slice_from_str("a reply")));
}

static void they_come_back_as_they_were_written(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0}, again = {0};
    struct refusal no = {0};
    make_rich(&made);
    assert_true(record_encode(&made, &bytes, &no));
    if (!record_decode(buffer_peek(&bytes), &read, &no))
        fail_msg("%s: %s", no.field, no.text);
    assert_string_equal(read.end, "done");
    assert_true(read.truncated && read.attempt == 3 && !read.messages[0].sampled && read.messages[1].sampled);
    const struct record_turn *turn = &read.traces[0].turns[1];
    assert_true(turn->sampling->temperature == 0.7 && turn->sampling->top_k == 40 && turn->sampling->seed == 12);
    assert_int_equal(turn->version_count, 2);
    assert_string_equal(turn->versions[1].version, "v8");
    assert_int_equal(read.traces[0].column_count, 4);
    const struct record_extra *experts = &read.traces[0].columns[0], *kept = &read.traces[0].columns[1];
    assert_true(experts->shape.count == 2 && experts->shape.sizes[1] == 2 && experts->rows == 6 &&
                !experts->counts.data);
    assert_int_equal(((const uint8_t *)experts->values.data)[2], 7);
    assert_true(kept->offset == 3 && kept->counts.bytes == 8 && ((const uint32_t *)kept->values.data)[2] == 6);
    assert_true(record_encode(&read, &again, &no) && slice_equal(buffer_peek(&bytes), buffer_peek(&again)));
}

static void a_seed_left_to_the_engine_is_absent(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0};
    make_rich(&made);
    made.traces[0].turns[1].sampling->seed = -1;
    assert_true(record_encode(&made, &bytes, NULL) && !holds(&bytes, "seed"));
    assert_true(record_decode(buffer_peek(&bytes), &read, NULL));
    assert_int_equal(read.traces[0].turns[1].sampling->seed, -1);
}

/* What a change of the record makes of its check. */
static void expect_refused(const struct record *record, enum refusal_reason reason, const char *field)
{
    struct refusal no = {0};
    AUTO_BUFFER bytes = {0};
    if (record_encode(record, &bytes, &no) || no.reason != reason || strcmp(no.field, field) != 0)
        fail_msg("%s [%s] %s, not %s [%s]", refusal_wire(no.reason), no.field, no.text, refusal_wire(reason), field);
}

#define CHANGED(change, reason, field)                                                                                 \
    do {                                                                                                               \
        AUTO_RECORD record;                                                                                            \
        make_rich(&record);                                                                                            \
        struct record_turn *turn = &record.traces[0].turns[1];                                                         \
        struct record_extra *column = record.traces[0].columns;                                                        \
        (void)turn, (void)column;                                                                                      \
        change;                                                                                                        \
        expect_refused(&record, reason, field);                                                                        \
    } while (0)

static void spans_that_do_not_cover_their_turn_are_refused(void **state)
{
    (void)state;
    static const char field[] = "traces[0].turns[1].versions";
    CHANGED(turn->versions[1].length = 2, REFUSAL_TOO_SMALL, field);
    CHANGED(turn->versions[1].length = 4, REFUSAL_WRONG_TYPE, field);
    CHANGED(turn->versions[1].offset = 0, REFUSAL_WRONG_TYPE, field);
    CHANGED(turn->versions[0].length = 0, REFUSAL_WRONG_TYPE, field);
    CHANGED(turn->sampling->top_p = NAN, REFUSAL_NOT_FINITE, "traces[0].turns[1].sampling");
    CHANGED(record.messages[1].role[0] = 'x', REFUSAL_WRONG_TYPE, "messages[1].role");
    CHANGED(strcpy(record.messages[1].role, "user"), REFUSAL_WRONG_TYPE, "messages[1].sampled");
}

static void columns_of_another_shape_than_they_say_are_refused(void **state)
{
    (void)state;
    CHANGED(strcpy(column[0].name, "Bad name"), REFUSAL_BAD_NAME, "traces[0].columns[0].name");
    CHANGED(strcpy(column[1].name, "halves"), REFUSAL_DUPLICATE_FIELD, "traces[0].columns[3].name");
    CHANGED(strcpy(column[0].type, "f64"), REFUSAL_WRONG_TYPE, "traces[0].columns[0].type");
    CHANGED(column[0].rows = 8, REFUSAL_TOO_LARGE, "traces[0].columns[0].rows");
    CHANGED(column[0].offset = 0xffffffff, REFUSAL_TOO_LARGE, "traces[0].columns[0].rows");
    CHANGED(column[0].rows = 5, REFUSAL_WRONG_TYPE, "traces[0].columns[0].values");
    CHANGED(column[0].shape.sizes[0] = 0, REFUSAL_WRONG_TYPE, "traces[0].columns[0].shape");
    CHANGED(column[0].shape.sizes[0] = 0xffffffff, REFUSAL_WRONG_TYPE, "traces[0].columns[0].shape");
    CHANGED(column[0].shape.count = 5, REFUSAL_WRONG_TYPE, "traces[0].columns[0].shape");
    CHANGED(column[1].rows = 1, REFUSAL_WRONG_TYPE, "traces[0].columns[1].counts");
    CHANGED(((uint32_t *)column[1].counts.data)[0] = 0xffffffff, REFUSAL_WRONG_TYPE, "traces[0].columns[1].values");
    CHANGED(((float *)column[2].values.data)[6] = -INFINITY, REFUSAL_NOT_FINITE, "traces[0].columns[2].values");
    CHANGED(((uint16_t *)column[3].values.data)[6] = 0x7c00, REFUSAL_NOT_FINITE, "traces[0].columns[3].values");
}

static void no_more_columns_are_taken_than_a_trace_may_have(void **state)
{
    (void)state;
    AUTO_RECORD record;
    struct record_extra none = {"none", "u8", 0, 0, {0}, {0}, {0}};
    make_rich(&record);
    for (size_t i = record.traces[0].column_count; i < RECORD_COLUMNS_MAX; i++)
        assert_true(record_add_column(&record.traces[0], &none));
    assert_false(record_add_column(&record.traces[0], &none));
}

static void damage_and_truncation_are_refused_or_read(void **state)
{
    (void)state;
    AUTO_RECORD made;
    AUTO_BUFFER bytes = {0};
    size_t refused = 0;
    make_rich(&made);
    assert_true(record_encode(&made, &bytes, NULL));
    for (size_t len = 0; len < bytes.len; len++) {
        AUTO_RECORD read;
        assert_false(record_decode(slice_of(bytes.data, len), &read, NULL));
    }
    for (size_t at = 0; at < bytes.len; at++)
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            AUTO_RECORD read;
            struct refusal no = {0};
            bytes.data[at] ^= (uint8_t)flip;
            bool good = record_decode(buffer_peek(&bytes), &read, &no);
            assert_true(good == (no.reason == REFUSAL_NONE));
            refused += !good;
            bytes.data[at] ^= (uint8_t)flip;
        }
    assert_true(refused > 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_come_back_as_they_were_written),
        cmocka_unit_test(a_seed_left_to_the_engine_is_absent),
        cmocka_unit_test(spans_that_do_not_cover_their_turn_are_refused),
        cmocka_unit_test(columns_of_another_shape_than_they_say_are_refused),
        cmocka_unit_test(no_more_columns_are_taken_than_a_trace_may_have),
        cmocka_unit_test(damage_and_truncation_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
