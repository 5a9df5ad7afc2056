/* What handlers, and whatever runs in an evaluator's sandbox, are shown of a task. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "schemas/task/task_shown.h"

static void expect_shown(enum task_viewer viewer, const char *json, const char *shown)
{
    AUTO_BUFFER room = {0};
    struct slice ret;
    assert_true(task_shown_to(viewer, slice_from_str(json), &room, &ret));
    if (!slice_is(ret, shown))
        fail_msg("%s\nis shown as %.*s\nand not as %s", json, SLICE_ARG(ret), shown);
}

#define TASK(more) "{\"task\":\"t\",\"metadata\":{\"a\":1.5}" more "}"
#define SOLUTION ",\"solution\":{\"commands\":[\"cat key\"]}"
#define EVAL ",\"eval\":{\"kind\":\"exact\",\"answer\":\"42\"}"

static void nobody_is_shown_a_solution(void **state)
{
    (void)state;
    for (enum task_viewer viewer = TASK_VIEWER_EVALUATOR; viewer <= TASK_VIEWER_AGENT; viewer++) {
        expect_shown(viewer, TASK(SOLUTION), TASK(""));
        expect_shown(viewer, TASK(",\"s\\u006flution\":{\"answer\":\"x\"}"), TASK(""));
        expect_shown(viewer, TASK(",\"steps\":[{\"name\":\"one\"" SOLUTION "},{\"name\":\"two\"" SOLUTION "}]"),
                     TASK(",\"steps\":[{\"name\":\"one\"},{\"name\":\"two\"}]"));
    }
}

static void an_agent_is_not_shown_how_it_is_judged(void **state)
{
    (void)state;
    expect_shown(TASK_VIEWER_AGENT, TASK(EVAL), TASK(",\"eval\":{\"kind\":\"exact\"}"));
    expect_shown(TASK_VIEWER_AGENT, TASK(",\"eval\":{\"files\":{\"/eval/key\":\"42\"}}"), TASK(",\"eval\":{}"));
    expect_shown(TASK_VIEWER_AGENT, TASK(",\"steps\":[{\"name\":\"one\"" EVAL "}]"),
                 TASK(",\"steps\":[{\"name\":\"one\",\"eval\":{\"kind\":\"exact\"}}]"));
    expect_shown(TASK_VIEWER_EVALUATOR, TASK(EVAL SOLUTION), TASK(EVAL));
}

static void what_hides_nothing_is_shown_byte_for_byte(void **state)
{
    (void)state;
    AUTO_BUFFER room = {0};
    struct slice json = slice_from_str("{ \"task\" : \"t\", \"prompt\": \"the \\\"solution\\\": none\" }"), ret;
    assert_true(task_shown_to(TASK_VIEWER_AGENT, json, &room, &ret));
    assert_ptr_equal(ret.data, json.data);
    assert_int_equal(ret.len, json.len);
    assert_int_equal(room.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_shown_a_solution),
        cmocka_unit_test(an_agent_is_not_shown_how_it_is_judged),
        cmocka_unit_test(what_hides_nothing_is_shown_byte_for_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
