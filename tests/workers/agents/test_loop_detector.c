/* Whether calls go in circles, by what they were and gave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/agents/conversation/loop_detector.h"

/* Each letter is a call whose result is the letter; a capital is the call that gives something else. */
static size_t round_of(const char *calls, size_t max)
{
    static struct loop_detector repeats;
    loop_detector_forget(&repeats);
    for (const char *at = calls; *at; at++) {
        const bool is_other = *at < 'a';
        const char call = is_other ? (char)(*at + 'a' - 'A') : *at;
        loop_detector_add(&repeats, "bash", slice_of(&call, 1), slice_of(at, 1), is_other);
    }
    return loop_detector_find(&repeats, max);
}

static void a_round_is_found_when_it_was_made_more_often_than_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *calls;
        size_t max, round;
    } rows[] = {
        {"", 1, 0},           {"a", 1, 0},          {"aa", 1, 1},        {"aa", 2, 0},     {"aaa", 2, 1},
        {"baaa", 2, 1},       {"aaab", 2, 0},       {"aaA", 2, 0},       {"aAaA", 1, 2},   {"abab", 1, 2},
        {"ababa", 1, 2},      {"ababa", 2, 0},      {"ababab", 2, 2},    {"abcabc", 1, 3}, {"abcdabcd", 1, 4},
        {"abcdeabcde", 1, 0}, {"xabcabcabc", 2, 3}, {"abcabcabx", 1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (round_of(rows[i].calls, rows[i].max) != rows[i].round)
            fail_msg("%s at %zu: %zu", rows[i].calls, rows[i].max, round_of(rows[i].calls, rows[i].max));
}

static void what_differs_in_any_part_is_another_call(void **state)
{
    (void)state;
    const struct {
        const char *name, *call, *result;
        int status;
    } others[] = {{"edit", "a", "r", 0}, {"bash", "b", "r", 0}, {"bash", "a", "s", 0},
                  {"bash", "a", "r", 1}, {"bash", "ar", "", 0}, {"basha", "", "r", 0}};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct loop_detector repeats = {0};
        loop_detector_add(&repeats, "bash", slice_from_str("a"), slice_from_str("r"), 0);
        loop_detector_add(&repeats, others[i].name, slice_from_str(others[i].call), slice_from_str(others[i].result),
                          others[i].status);
        assert_int_equal(loop_detector_find(&repeats, 1), 0);
    }
}

static void the_ring_holds_the_longest_round_that_can_be_asked_for(void **state)
{
    (void)state;
    struct loop_detector repeats = {0};
    for (int k = 0; k < 3 * (REPEATS_MAX + 1); k++)
        for (int c = 0; c < REPEATS_PERIOD_MAX; c++) {
            assert_int_equal(loop_detector_find(&repeats, REPEATS_MAX), k > REPEATS_MAX ? REPEATS_PERIOD_MAX : 0);
            loop_detector_add(&repeats, "bash", slice_of(&c, sizeof(c)), slice_from_str(""), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_is_found_when_it_was_made_more_often_than_allowed),
        cmocka_unit_test(what_differs_in_any_part_is_another_call),
        cmocka_unit_test(the_ring_holds_the_longest_round_that_can_be_asked_for),
    };
    return cmocka_run_group_tests_name("repeats", tests, NULL, NULL);
}
