#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/nearest.h"

#define ROWS(array) (sizeof(array) / sizeof(*(array)))

static size_t distance(const char *a, const char *b) { return name_distance(slice_from_str(a), slice_from_str(b)); }

static void a_distance_counts_changed_bytes(void **state)
{
    (void)state;
    assert_int_equal(distance("prompt", "prompt"), 0);
    assert_int_equal(distance("Runs-Max", "runs_max"), 0);
    assert_int_equal(distance("promt", "prompt"), 1);
    assert_int_equal(distance("statsu", "status"), 2);
    assert_int_equal(distance("execute_bash", "bash"), 1);
    assert_int_equal(distance("", "bash"), 4);
}

static void only_what_may_have_been_meant_is_suggested(void **state)
{
    static const char *const names[] = {"submit", "show", "status", "watch", "versions_behind"};
    static const struct {
        const char *wanted, *text;
    } rows[] = {
        {"submitt", "; did you mean 'submit'?"},
        {"stauts", "; did you mean 'status'?"},
        {"shw", "; did you mean 'show'?"},
        {"version-behind", "; did you mean 'versions_behind'?"},
        {"metrics", ""},
        {"s", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct nearest nearest = {.wanted = slice_from_str(rows[i].wanted)};
        char text[NEAREST_TEXT_SIZE];
        for (size_t k = 0; k < ROWS(names); k++)
            nearest_offer_str(&nearest, names[k]);
        assert_string_equal(nearest_text(&nearest, "", text), rows[i].text);
    }
}

static void what_was_offered_nothing_suggests_nothing(void **state)
{
    const struct nearest nearest = {.wanted = slice_from_str("submit")};
    char text[NEAREST_TEXT_SIZE];
    (void)state;
    assert_string_equal(nearest_text(&nearest, "", text), "");
}

static void names_of_any_length_are_compared_by_their_beginning(void **state)
{
    char a[1000], b[1000], text[NEAREST_TEXT_SIZE];
    (void)state;
    memset(a, 'x', sizeof(a));
    memset(b, 'x', sizeof(b));
    a[NAME_DISTANCE_MAX] = 'y';
    struct nearest nearest = {.wanted = slice_of(a, sizeof(a))};
    nearest_offer(&nearest, slice_of(b, sizeof(b)));
    assert_int_equal(nearest.distance, 0);
    assert_int_equal(strlen(nearest_text(&nearest, "--", text)), strlen("; did you mean '--'?") + NAME_DISTANCE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_distance_counts_changed_bytes),
        cmocka_unit_test(only_what_may_have_been_meant_is_suggested),
        cmocka_unit_test(what_was_offered_nothing_suggests_nothing),
        cmocka_unit_test(names_of_any_length_are_compared_by_their_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
