/* How far the policy has gone on since a rollout's first turn, and what its task says to that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "workers/agents/staleness.h"

static struct task *task_of(const char *limits)
{
    char json[256];
    struct refusal no = {0};
    snprintf(json, sizeof(json), "{\"task\":\"t\",\"prompt\":\"p\",\"limits\":{%s}}", limits);
    struct task *task = task_parse(slice_from_str(json), &no);
    if (!task)
        fail_msg("%s: %s", no.field, no.text);
    return task;
}

static void what_counts_is_from_the_first_turn_to_the_one_that_begins(void **state)
{
    (void)state;
    struct task *task = task_of("\"versions_behind\":2");
    struct staleness age = {0};
    struct fail fail;
    assert_int_equal(staleness_check(&age, task, 40, &fail), 0); /* nothing was sampled yet */
    staleness_take(&age, 40);
    assert_int_equal(staleness_check(&age, task, 42, &fail), 0);
    staleness_take(&age, 42);
    assert_false(staleness_is_marked(&age, task));
    assert_int_equal(staleness_check(&age, task, 43, &fail), -EKEYEXPIRED);
    assert_string_equal(fail.text, "the policy has gone on by 3 since the first turn, "
                                   "limits.versions_behind is 2");
    assert_int_equal(staleness_check(&age, task, 7, &fail), 0); /* of an engine that was set back */
    task_destroy(task);
}

static void the_oldest_version_is_that_of_any_turn(void **state)
{
    (void)state;
    struct staleness age = {0};
    staleness_take(&age, 0);
    assert_int_equal(age.oldest, 0);
    staleness_take(&age, 40);
    staleness_take(&age, 7); /* of an engine that was set back */
    staleness_take(&age, 42);
    staleness_take(&age, 0);
    assert_int_equal(age.oldest, 7);
}

static void no_limit_and_none_at_all(void **state)
{
    (void)state;
    struct task *any = task_of(""), *none = task_of("\"versions_behind\":0");
    struct staleness age = {0};
    struct fail fail;
    staleness_take(&age, 0); /* nobody had said a version: how far a turn is from it nobody knows */
    assert_int_equal(staleness_check(&age, none, 400, &fail), 0);
    staleness_take(&age, 400);
    assert_int_equal(staleness_check(&age, any, 1000, &fail), 0);
    assert_int_equal(staleness_check(&age, none, 0, &fail), 0);
    assert_int_equal(staleness_check(&age, none, 400, &fail), 0);
    assert_int_equal(staleness_check(&age, none, 401, &fail), -EKEYEXPIRED);
    staleness_take(&age, 1000);
    assert_false(staleness_is_marked(&age, any));
    task_destroy(any);
    task_destroy(none);
}

static void the_task_says_what_becomes_of_it(void **state)
{
    (void)state;
    struct task *stop = task_of("\"versions_behind\":0"),
                *refresh = task_of("\"versions_behind\":0,\"on_stale\":\"refresh\""),
                *mark = task_of("\"versions_behind\":0,\"on_stale\":\"mark\"");
    struct staleness age = {0};
    struct fail fail;
    staleness_take(&age, 1);
    assert_int_equal(staleness_outcome(stop), OUTCOME_CANCELLED);
    assert_int_equal(staleness_outcome(refresh), OUTCOME_INFRA);
    assert_int_equal(staleness_check(&age, refresh, 2, &fail), -EKEYEXPIRED);
    assert_int_equal(staleness_check(&age, mark, 2, &fail), 0);
    assert_false(staleness_is_marked(&age, mark)); /* not before a turn was */
    staleness_take(&age, 2);
    staleness_take(&age, 1);
    assert_true(staleness_is_marked(&age, mark));
    assert_int_equal(age.most, 1);
    task_destroy(stop);
    task_destroy(refresh);
    task_destroy(mark);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_counts_is_from_the_first_turn_to_the_one_that_begins),
        cmocka_unit_test(the_oldest_version_is_that_of_any_turn),
        cmocka_unit_test(no_limit_and_none_at_all),
        cmocka_unit_test(the_task_says_what_becomes_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
