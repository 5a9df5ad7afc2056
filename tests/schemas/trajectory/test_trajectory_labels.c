/* What traces of a harness say of themselves: labels, what masks a turn, and whose messages are whose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schemas/trajectory/trajectory_wire.h"
#include "tests/schemas/trajectory/sample_record.h"

/* Two turns, of which the second is masked, and five messages. */
static void make_labelled(struct record *record)
{
    static const uint32_t ids[] = {1, 2};
    static const float logprobs[] = {-1, -1};
    struct record_turn masked = said_turn;
    make_record(record);
    for (int i = 0; i < 3; i++)
        assert_true(record_say(record, "user", slice_from_str("x"), NULL, 0));
    assert_true(record_start_trace(record, "branch: another"));
    assert_true(record_append(record, &said_turn, ids, logprobs, 2, true));
    strcpy(masked.masked, "undelivered");
    assert_true(record_append(record, &masked, ids, NULL, 2, false));
    struct record_trace *trace = &record->traces[2];
    strcpy(trace->label, "sub-agent");
    assert_true(record_stretches_add(&trace->messages, 0, 1) && record_stretches_add(&trace->messages, 3, 2));
}

static void labels_and_messages_survive_the_round_trip_and_others_have_none(void **state)
{
    (void)state;
    AUTO_RECORD made, read;
    AUTO_BUFFER bytes = {0}, bare = {0};
    struct refusal no;
    make_labelled(&made);
    if (!record_encode(&made, &bytes, &no) || !record_decode(buffer_peek(&bytes), &read, &no))
        fail_msg("%s", no.text);
    const struct record_trace *trace = &read.traces[2];
    assert_string_equal(trace->label, "sub-agent");
    assert_string_equal(trace->turns[0].masked, "");
    assert_string_equal(trace->turns[1].masked, "undelivered");
    assert_int_equal(trace->messages.count, 2);
    assert_int_equal(trace->messages.runs[1].offset, 3);
    assert_int_equal(trace->messages.runs[1].length, 2);
    assert_string_equal(read.traces[0].label, "");
    assert_int_equal(read.traces[0].messages.count, 0);
    make_bytes(&bare);
    assert_false(holds(&bare, "\xa5label") ||
                 holds(&bare, "\xa6masked")); /* keys that are absent where they say nothing */
    assert_true(holds(&bytes, "\xa5label") && holds(&bytes, "\xa6masked"));
}

static void runs_that_continue_each_other_are_one(void **state)
{
    (void)state;
    struct record_stretches stretches = {0};
    assert_true(record_stretches_add(&stretches, 2, 1) && record_stretches_add(&stretches, 3, 2));
    assert_true(record_stretches_add(&stretches, 9, 0) && record_stretches_add(&stretches, 7, 1));
    assert_int_equal(stretches.count, 2);
    assert_int_equal(stretches.runs[0].length, 3);
    assert_int_equal(stretches.runs[1].offset, 7);
    free(stretches.runs);
}

static void break_label(struct record *r) { strcpy(r->traces[2].label, "title"); }
static void break_label_end(struct record *r) { memset(r->traces[2].label, 'a', LABEL_SIZE); }
static void break_masked(struct record *r) { strcpy(r->traces[2].turns[1].masked, "title"); }
static void break_masked_prompt(struct record *r) { strcpy(r->traces[0].turns[0].masked, "main"); }
static void break_masked_sampled(struct record *r) { strcpy(r->traces[2].turns[0].masked, "main"); }
static void break_run_beyond(struct record *r) { r->traces[2].messages.runs[1].length = 3; }
static void break_run_far(struct record *r) { r->traces[2].messages.runs[1].offset = UINT32_MAX; }
static void break_run_back(struct record *r) { r->traces[2].messages.runs[1].offset = 0; }
static void break_run_empty(struct record *r) { r->traces[2].messages.runs[0].length = 0; }

static void what_they_may_not_say_is_refused(void **state)
{
    (void)state;
    static const struct {
        void (*damage)(struct record *);
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {break_label, REFUSAL_WRONG_TYPE, "traces[2].label"},
        {break_label_end, REFUSAL_TOO_LARGE, "traces[2].label"},
        {break_masked, REFUSAL_WRONG_TYPE, "traces[2].turns[1].masked"},
        {break_masked_prompt, REFUSAL_WRONG_TYPE, "traces[0].turns[0].masked"},
        {break_masked_sampled, REFUSAL_TOO_LARGE, "traces[2].mask"},
        {break_run_beyond, REFUSAL_WRONG_TYPE, "traces[2].messages"},
        {break_run_far, REFUSAL_WRONG_TYPE, "traces[2].messages"},
        {break_run_back, REFUSAL_WRONG_TYPE, "traces[2].messages"},
        {break_run_empty, REFUSAL_WRONG_TYPE, "traces[2].messages"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_RECORD record;
        AUTO_BUFFER bytes = {0};
        struct refusal no = {0};
        make_labelled(&record);
        rows[i].damage(&record);
        assert_false(record_check(&record, &no));
        assert_string_equal(no.field, rows[i].field);
        assert_int_equal(no.reason, rows[i].reason);
        bytes.len = 0;
        /* As another program may send it. */
        AUTO_RECORD read;
        record_init(&read);
        if (rows[i].damage != break_label_end) {
            assert_true(record_map_encode(&bytes, MAP_record, &record));
            assert_false(record_decode(buffer_peek(&bytes), &read, &no));
        }
    }
}

/* The last turn of all is that of the main conversation, whatever stands behind it. */
static void the_last_turn_is_the_main_conversations(void **state)
{
    (void)state;
    AUTO_RECORD record;
    make_labelled(&record);
    const struct record_turn *of_main = &record.traces[0].turns[1];
    assert_ptr_equal(record_sampled(&record).last, of_main);
    record.traces[2].label[0] = '\0';
    assert_ptr_equal(record_sampled(&record).last, &record.traces[2].turns[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_and_messages_survive_the_round_trip_and_others_have_none),
        cmocka_unit_test(runs_that_continue_each_other_are_one),
        cmocka_unit_test(what_they_may_not_say_is_refused),
        cmocka_unit_test(the_last_turn_is_the_main_conversations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
