/* What a job's time went to: counted in its fiber, told in a field that holds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "schemas/messages/message_max.h"
#include "schemas/metrics/times.h"
#include "workers/jobs/trace_counts.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"

static struct activity activity;
static struct buffer text;

static int tear_down(void **state)
{
    (void)state;
    spent_finish(&activity.spent);
    buffer_finish(&text);
    return 0;
}

static void end(void *arg) { loop_stop(arg); }

/* In a fiber whose activity is the one above. */
static void run_in_fiber(void (*run)(void *arg))
{
    struct loop *loop = loop_create();
    assert_non_null(loop);
    struct fiber *fiber = fiber_start(loop, run, end, loop);
    assert_non_null(fiber);
    fiber_set_activity(fiber, &activity);
    loop_run(loop);
    loop_destroy(&loop);
}

static void spend(void *arg)
{
    (void)arg;
    spent_engine_call(0.5, 100, 40);
    spent_engine_call(7, 200, 0);
    spent_sandbox_start(0.03);
    spent_tool_call("bash", 0.001);
    spent_tool_call("ipython", 2);
    spent_tool_call("bash", 0.002);
}

static void what_happens_in_a_jobs_fiber_is_its_own(void **state)
{
    (void)state;
    spent_engine_call(1, 1, 1); /* in no fiber: of nobody */
    spent_write(&activity.spent, &text);
    assert_int_equal(text.len, 0);
    run_in_fiber(spend);
    assert_int_equal(activity.spent.prompt_tokens, 300);
    assert_int_equal(activity.spent.cached_tokens, 40);
    spent_write(&activity.spent, &text);
    assert_true(
        slice_is(buffer_peek(&text), "engine=7500:5x1,8x1 sandbox=30:2x1 tool:bash=3:0x2 tool:ipython=2000:6x1"));
}

static void spend_much(void *arg)
{
    static const double classes[] = {0.001, 0.02, 0.05, 0.1, 0.3, 0.5, 2, 5, 10, 30, 90, 200, 500, 1000, 3000, 9000};
    char name[80];
    (void)arg;
    for (int tool = 0; tool < 40; tool++) {
        snprintf(name, sizeof(name), "a_tool_with_a_name_that_is_as_long_as_a_name_of_a_tool_is_%d", tool);
        for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
            spent_tool_call(name, classes[i]);
    }
}

static void more_than_the_field_holds_is_left_out_whole(void **state)
{
    (void)state;
    struct times_entry entry;
    size_t count = 0;
    run_in_fiber(spend_much);
    spent_write(&activity.spent, &text);
    assert_true(text.len <= MESSAGE_MAX(job_result, times));
    for (size_t at = 0; times_next(buffer_peek(&text), &at, &entry); count++)
        assert_int_equal(observed_count(&entry.times), OBSERVED_CLASSES_MAX);
    assert_true(count > 10 && count <= SPENT_TOOLS_MAX);
}

static void traces_are_told_by_the_word_of_their_reason(void **state)
{
    (void)state;
    static const char *const reasons[] = {"", "cut: the reply before ended by its length", "compaction",
                                          "cut: the reply before ended by its length",
                                          "a word that is much longer than a word may be in there: so it is another"};
    struct record record;
    record_init(&record);
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        assert_true(record_start_trace(&record, reasons[i]));
    trace_counts_write(&record, &text);
    assert_true(slice_is(buffer_peek(&text), "first=1 cut=2 compaction=1 other=1"));
    buffer_clear(&text);
    for (int i = 0; i < 40; i++) {
        char word[16];
        snprintf(word, sizeof(word), "word%d", i);
        assert_true(record_start_trace(&record, word));
    }
    trace_counts_write(&record, &text);
    assert_true(text.len <= MESSAGE_MAX(job_result, traces));
    assert_non_null(memmem(text.data, text.len, " other=", 7));
    record_finish(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_happens_in_a_jobs_fiber_is_its_own, tear_down),
        cmocka_unit_test_teardown(more_than_the_field_holds_is_left_out_whole, tear_down),
        cmocka_unit_test_teardown(traces_are_told_by_the_word_of_their_reason, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
