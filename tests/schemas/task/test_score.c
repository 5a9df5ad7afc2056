/* score: what a task may say of a teacher, and what the eval stage then needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/schemas/task/task_asserts.h"

static void without_it_nothing_is_scored(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"samples\":1");
    assert_null(task->score.engine);
    assert_false(task_needs_teacher(task) || task_eval_reads_record(task));
    assert_null(task_eval_policy(task));
    assert_int_equal(task_score_s(task), 0);
}

static void with_it_the_eval_stage_needs_an_engine_the_record_and_time(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"score\":{\"engine\":\"big\",\"top_k\":8,\"timeout_s\":60}");
    assert_true(task_needs_teacher(task) && task_eval_reads_record(task));
    assert_string_equal(task_eval_policy(task), "big");
    assert_int_equal(task->score.top_k, 8);
    assert_int_equal(task_score_s(task), 60);
    AUTO_TASK plain = parse_member("\"score\":{\"engine\":\"big\"}");
    assert_int_equal(plain->score.top_k, 0);
    assert_int_equal(task_score_s(plain), 1200);
}

static void what_samples_nothing_needs_no_teacher(void **state)
{
    (void)state;
    AUTO_TASK task = parse_member("\"agent\":{\"kind\":\"none\"},\"score\":{\"engine\":\"big\"}");
    assert_false(task_needs_teacher(task));
    assert_null(task_eval_policy(task));
    assert_int_equal(task_score_s(task), 0);
}

#define JUDGE "\"eval\":{\"kind\":\"judge\",\"judge\":{\"reference\":\"4\",\"policy\":\"big\"}}"

static void one_engine_judges_and_scores(void **state)
{
    (void)state;
    AUTO_TASK both = parse_member(JUDGE ",\"score\":{\"engine\":\"big\"}");
    assert_true(task_needs_judge(both) && task_needs_teacher(both));
    assert_string_equal(task_eval_policy(both), "big");
    AUTO_TASK judged = parse_member(JUDGE);
    assert_string_equal(task_eval_policy(judged), "big");
    assert_member_refused(JUDGE ",\"score\":{\"engine\":\"other\"}", REFUSAL_BAD_TASK, "score.engine");
}

static void what_it_does_not_go_with_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *member;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {"\"score\":{\"top_k\":1}", REFUSAL_MISSING_FIELD, "score.engine"},
        {"\"score\":{\"timeout_s\":600}", REFUSAL_MISSING_FIELD, "score.engine"},
        {"\"score\":{\"engine\":\"a b\"}", REFUSAL_BAD_NAME, "score.engine"},
        {"\"score\":{\"engine\":\"\"}", REFUSAL_TOO_SMALL, "score.engine"},
        {"\"score\":{\"engine\":\"a\",\"top_k\":65}", REFUSAL_TOO_LARGE, "score.top_k"},
        {"\"score\":{\"engine\":\"a\",\"timeout_s\":0}", REFUSAL_TOO_SMALL, "score.timeout_s"},
        {"\"score\":{\"engine\":\"a\",\"topk\":1}", REFUSAL_UNKNOWN_FIELD, "score.topk"},
        {"\"score\":\"a\"", REFUSAL_WRONG_TYPE, "score"},
        {"\"kind\":\"noop\",\"score\":{\"engine\":\"a\"}", REFUSAL_BAD_TASK, "score.engine"},
        {"\"eval\":{\"kind\":\"command\",\"command\":\"c\",\"sandbox\":\"agent\"},\"score\":{\"engine\":\"a\"}",
         REFUSAL_BAD_TASK, "score.engine"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_member_refused(rows[i].member, rows[i].reason, rows[i].field);
    assert_refused("{\"task\":\"t\",\"steps\":[{\"name\":\"a\",\"prompt\":\"p\"}],\"eval\":{\"kind\":\"command\","
                   "\"command\":\"c\",\"sandbox\":\"agent\"},\"score\":{\"engine\":\"a\"}}",
                   REFUSAL_BAD_TASK, "score.engine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_it_nothing_is_scored),
        cmocka_unit_test(with_it_the_eval_stage_needs_an_engine_the_record_and_time),
        cmocka_unit_test(what_samples_nothing_needs_no_teacher),
        cmocka_unit_test(one_engine_judges_and_scores),
        cmocka_unit_test(what_it_does_not_go_with_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
