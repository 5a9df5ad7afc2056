/* What may be posted at a session's end, and how the rest is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workers/agents/sessions/posted.h"

static void takes(const char *body, bool has_reward, double reward)
{
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    if (!posted_read(slice_from_str(body), "posted", &verdict, &no))
        fail_msg("%s: %s", body, no.text);
    assert_int_equal(verdict.has_reward, has_reward);
    assert_true(!has_reward || verdict.reward == reward);
}

static void refuses(const char *body, const char *kind, enum refusal_reason reason, const char *words)
{
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    assert_false(posted_read(slice_from_str(body), kind, &verdict, &no));
    assert_string_equal(refusal_wire(no.reason), refusal_wire(reason));
    if (!strstr(no.text, words))
        fail_msg("%s: '%s' is not in '%s'", body, words, no.text);
}

static void a_reward_is_a_number_or_absent(void **state)
{
    (void)state;
    takes("{\"reward\": 0.5}", true, 0.5);
    takes("{\"reward\": -3}", true, -3);
    takes("{\"reward\": 0}", true, 0);
    takes("{\"reward\": null}", false, 0);
    takes("{\"metrics\": {\"edits\": 3}, \"detail\": \"quick\"}", false, 0);
    takes("{}", false, 0);
    takes(" \n", false, 0);
    takes("", false, 0);
}

static void without_it_the_parts_are_summed(void **state)
{
    (void)state;
    takes("{\"parts\": {\"format\": 0.25, \"right\": 0.5}}", true, 0.75);
    takes("{\"parts\": {\"format\": 0.25}, \"reward\": 1}", true, 1);
    takes("{\"parts\": {}}", false, 0);
}

static void what_is_none_of_these_is_refused_by_its_name(void **state)
{
    (void)state;
    refuses("{\"reward\": \"1\"}", "posted", REFUSAL_WRONG_TYPE, "reward must be a number");
    refuses("{\"reward\": true}", "posted", REFUSAL_WRONG_TYPE, "reward must be a number");
    refuses("{\"reward\": [1]}", "posted", REFUSAL_WRONG_TYPE, "reward must be a number");
    refuses("{\"reward\": NaN}", "posted", REFUSAL_MALFORMED, "the body is no JSON");
    refuses("{\"reward\": 1e999}", "posted", REFUSAL_MALFORMED, "the body is no JSON");
    refuses("{\"reward\": 1", "posted", REFUSAL_MALFORMED, "the body is no JSON");
    refuses("{\"reward\": 1, \"reward\": 2}", "posted", REFUSAL_MALFORMED, "duplicate");
    refuses("reward=1", "posted", REFUSAL_MALFORMED, "the body is no JSON");
    refuses("[[[[[[[[[[1]]]]]]]]]]", "posted", REFUSAL_MALFORMED, "the body is no JSON");
    refuses("1", "posted", REFUSAL_MALFORMED, "the body is no JSON");
    refuses("[1]", "posted", REFUSAL_WRONG_TYPE, "the body must be an object");
    refuses("{\"rewards\": 1}", "posted", REFUSAL_UNKNOWN_FIELD,
            "rewards is no field: reward, parts, metrics and detail");
    refuses("{\"parts\": [1]}", "posted", REFUSAL_WRONG_TYPE, "parts must be an object");
    refuses("{\"parts\": {\"a\": \"b\"}}", "posted", REFUSAL_WRONG_TYPE, "parts: a is not a number");
    refuses("{\"parts\": {\"\": 1}}", "posted", REFUSAL_TOO_SMALL, "parts");
    refuses("{\"metrics\": 3}", "posted", REFUSAL_WRONG_TYPE, "metrics must be an object");
    refuses("{\"detail\": 3}", "posted", REFUSAL_WRONG_TYPE, "detail must be a text");
}

static void another_evaluator_alone_scores(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    refuses("{\"reward\": 1}", "math", REFUSAL_NOT_ALLOWED,
            "reward: this task's evaluator is math, which alone scores it");
    refuses("{\"metrics\": {}}", "none", REFUSAL_NOT_ALLOWED, "metrics: this task's evaluator is none");
    assert_true(posted_read(slice_from_str("{\"reward\": null}"), "math", &verdict, &no));
    assert_true(posted_read(slice_from_str("{}"), "math", &verdict, &no));
    assert_false(verdict.has_reward);
}

static void a_body_is_bounded(void **state)
{
    (void)state;
    AUTO_VERDICT verdict = {0};
    struct refusal no = {0};
    static char body[POSTED_MAX + 1];
    memset(body, ' ', sizeof(body));
    assert_false(posted_read(slice_of(body, sizeof(body)), "posted", &verdict, &no));
    assert_int_equal(no.reason, REFUSAL_TOO_LARGE);
    memcpy(body, "{}", 2);
    assert_true(posted_read(slice_of(body, POSTED_MAX), "posted", &verdict, &no));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reward_is_a_number_or_absent),
        cmocka_unit_test(without_it_the_parts_are_summed),
        cmocka_unit_test(what_is_none_of_these_is_refused_by_its_name),
        cmocka_unit_test(another_evaluator_alone_scores),
        cmocka_unit_test(a_body_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
