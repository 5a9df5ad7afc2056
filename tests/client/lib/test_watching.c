/* What is heard of rollouts that are watched: batches as they come, and what is said of those that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "client/lib/live/watching.h"
#include "client/lib/request.h"

static struct watching watching;
static struct watch *watch;

static int set_up(void **state)
{
    (void)state;
    watching = (struct watching){.first = NULL};
    watch = watching_add(&watching, "g/0");
    watch->tag = 7;
    watch->wants_anew = true;
    watching_note_asked(watch, 1000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    watching_finish(&watching);
    return 0;
}

static void hear_at(int64_t now_ms, const char *stage, uint64_t attempt, uint64_t number, uint64_t count,
                    const char *events)
{
    struct answer answer = {.id = MSG_rollout_events,
                            .as.rollout_events = {.tag = 7,
                                                  .rollout = slice_from_str("g/0"),
                                                  .stage = slice_from_str(stage),
                                                  .attempt = attempt,
                                                  .number = number,
                                                  .count = count,
                                                  .events = slice_from_str(events)}};
    assert_true(watching_hear(&watching, &answer, now_ms));
}

static void hear(uint64_t number, uint64_t count, const char *events)
{
    hear_at(2000, "run", 1, number, count, events);
}

static void hear_state(const char *state)
{
    struct answer answer = {.id = MSG_rollout_state,
                            .as.rollout_state = {.tag = 7,
                                                 .rollout = slice_from_str("g/0"),
                                                 .stage = slice_from_str("run"),
                                                 .state = slice_from_str(state),
                                                 .attempt = 1,
                                                 .why = slice_from_str("so \"it\" is"),
                                                 .has_why = true}};
    assert_true(watching_hear(&watching, &answer, 2000));
}

static void expect(const char *batch)
{
    const char *taken = watching_take(&watching);
    if (batch && !taken)
        fail_msg("nothing was heard, not %s", batch);
    if (batch)
        assert_string_equal(taken, batch);
    else
        assert_null(taken);
}

static void batches_are_given_out_as_they_came(void **state)
{
    (void)state;
    hear(1, 2, "[{\"event\":\"a\"},{}]");
    hear(3, 1, "[{\"event\":\"b\"}]");
    expect("{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":1,\"events\":[{\"event\":\"a\"},{}]}");
    expect("{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":3,\"events\":[{\"event\":\"b\"}]}");
    expect(NULL);
}

static void what_was_dropped_is_counted_and_asked_for_anew(void **state)
{
    (void)state;
    hear(1, 1, "[{}]");
    hear(7, 1, "[{}]");
    expect("{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":1,\"events\":[{}]}");
    expect("{\"rollout\":\"g/0\",\"events\":[{\"event\":\"dropped\",\"count\":5}]}");
    expect("{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":7,\"events\":[{}]}");
    assert_true(watch->wants_anew);
    assert_int_equal(watch->ask_ms, 2000); /* a second after the last wish */
    watching_note_asked(watch, 2000);
    hear(8, 1, "[{}]");
    expect("{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":8,\"events\":[{}]}");
    hear_at(2500, "run", 1, 20, 1, "[{}]");
    assert_int_equal(watch->ask_ms, 3000);
}

static void what_is_told_to_others_before_the_beginning_is_passed_over(void **state)
{
    (void)state;
    hear(41, 1, "[{}]");
    expect(NULL);
    hear(1, 1, "[{}]");
    expect("{\"rollout\":\"g/0\",\"stage\":\"run\",\"attempt\":1,\"number\":1,\"events\":[{}]}");
}

static void a_beginning_that_does_not_come_was_dropped(void **state)
{
    (void)state;
    hear_at(1000 + BEGIN_MS, "run", 1, 41, 1, "[{}]");
    expect("{\"rollout\":\"g/0\",\"events\":[{\"event\":\"dropped\",\"count\":40}]}");
}

static void another_part_has_numbers_of_its_own(void **state)
{
    (void)state;
    hear(1, 3, "[{},{},{}]");
    hear_at(2000, "eval", 1, 1, 1, "[{}]");
    hear_at(2000, "run", 2, 1, 1, "[{}]");
    hear_at(2000, "run", 2, 2, 1, "[{}]");
    for (int i = 0; i < 4; i++)
        assert_null(strstr(watching_take(&watching), "dropped"));
    expect(NULL);
}

static void what_is_no_list_of_so_many_objects_is_not_told(void **state)
{
    (void)state;
    static const char *const lists[] = {"{}", "[", "[1]", "[{},{}]", "[]", "[{}]]", "\"]\"", "nonsense"};
    enum { LISTS = sizeof(lists) / sizeof(*lists) };
    hear(1, 1, "[{}]");
    assert_non_null(watching_take(&watching));
    for (size_t i = 0; i < LISTS; i++)
        hear(2 + i, 1, lists[i]);
    hear(2 + LISTS, 1, "[{}]");
    for (size_t i = 0; i < LISTS; i++)
        expect("{\"rollout\":\"g/0\",\"events\":[{\"event\":\"dropped\",\"count\":1}]}");
    assert_non_null(strstr(watching_take(&watching), "\"number\":10"));
    hear_at(2000, "elsewhere", 1, 1, 1, "[{}]");
    expect(NULL);
}

static void no_more_wait_than_may_and_the_rest_was_dropped(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= READY_MAX + 10; i++)
        hear(i, 1, "[{}]");
    for (int i = 0; i < READY_MAX; i++)
        assert_non_null(watching_take(&watching));
    expect(NULL);
    hear(READY_MAX + 11, 1, "[{}]");
    expect("{\"rollout\":\"g/0\",\"events\":[{\"event\":\"dropped\",\"count\":10}]}");
}

static void where_it_is_is_told_when_it_changes(void **state)
{
    (void)state;
    hear_state("queued");
    hear_state("queued");
    hear_state("leased");
    expect("{\"rollout\":\"g/0\",\"events\":[{\"event\":\"state\",\"stage\":\"run\",\"state\":\"queued\",\"attempt\":1,"
           "\"why\":\"so \\\"it\\\" is\"}]}");
    assert_non_null(strstr(watching_take(&watching), "leased"));
    expect(NULL);
}

static void its_end_is_told_last_and_once(void **state)
{
    (void)state;
    struct answer done = {.id = MSG_done, .as.done = {.tag = 7}};
    struct answer other = {.id = MSG_done, .as.done = {.tag = 8}};
    assert_false(watching_hear(&watching, &other, 2000));
    hear(1, 1, "[{}]");
    assert_true(watching_hear(&watching, &done, 2000));
    assert_non_null(strstr(watching_take(&watching), "\"number\":1"));
    expect("{\"rollout\":\"g/0\",\"events\":[{\"event\":\"ended\"}]}");
    expect(NULL);
    assert_int_equal(watching.count, 0);
}

static void a_refusal_ends_it_unless_there_may_be_room_later(void **state)
{
    (void)state;
    struct answer full = {.id = MSG_refused,
                          .as.refused = {.tag = 7,
                                         .reason = slice_from_str("queue-full"),
                                         .text = slice_from_str("later"),
                                         .has_retry_after_ms = true,
                                         .retry_after_ms = 1000}};
    struct answer gone = {
        .id = MSG_refused,
        .as.refused = {.tag = 7, .reason = slice_from_str("not-allowed"), .text = slice_from_str("this key may not")}};
    watching_hear(&watching, &full, 2000);
    assert_int_equal(watching.count, 1);
    watching_hear(&watching, &gone, 2000);
    assert_int_equal(watching.count, 0);
    assert_string_equal(watching.refused_text, "this key may not");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(batches_are_given_out_as_they_came),
        CASE(what_was_dropped_is_counted_and_asked_for_anew),
        CASE(what_is_told_to_others_before_the_beginning_is_passed_over),
        CASE(a_beginning_that_does_not_come_was_dropped),
        CASE(another_part_has_numbers_of_its_own),
        CASE(what_is_no_list_of_so_many_objects_is_not_told),
        CASE(no_more_wait_than_may_and_the_rest_was_dropped),
        CASE(where_it_is_is_told_when_it_changes),
        CASE(its_end_is_told_last_and_once),
        CASE(a_refusal_ends_it_unless_there_may_be_room_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
