/* Steps of a task: what is refused, and what each comes to as a task of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "schemas/task/steps.h"
#include "tests/schemas/task/task_asserts.h"

#define THERE "\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\"}"
#define STEPS(steps) "{\"task\":\"t\"," THERE ",\"steps\":[" steps "]}"

static void steps_take_the_place_of_a_prompt(void **state)
{
    (void)state;
    AUTO_TASK task = parse(STEPS("{\"name\":\"one\",\"prompt\":\"p\"},{\"name\":\"two\",\"prompt\":\"q\"}"));
    assert_int_equal(task->step_count, 2);
    assert_int_equal(task->message_count, 0);
    assert_string_equal(task->steps[1].prompt, "q");
    assert_string_equal(task->steps_reward, "mean");
}

static void a_step_has_a_name_of_its_own_and_a_prompt(void **state)
{
    (void)state;
    assert_refused(STEPS(""), REFUSAL_TOO_SMALL, "steps");
    assert_refused(STEPS("{\"name\":\"one\"}"), REFUSAL_MISSING_FIELD, "steps[0].prompt");
    assert_refused(STEPS("{\"prompt\":\"p\"}"), REFUSAL_MISSING_FIELD, "steps[0].name");
    assert_refused(STEPS("{\"name\":\"a/b\",\"prompt\":\"p\"}"), REFUSAL_BAD_NAME, "steps[0].name");
    assert_refused(STEPS("{\"name\":\"a\",\"prompt\":\"p\"},{\"name\":\"a\",\"prompt\":\"p\"}"), REFUSAL_BAD_TASK,
                   "steps[1]");
    assert_refused(STEPS("{\"name\":\"a\",\"prompt\":\"p\",\"evil\":{}}"), REFUSAL_UNKNOWN_FIELD, "steps[0].evil");
}

static void there_are_at_most_so_many(void **state)
{
    (void)state;
    for (int count = TASK_STEPS_MAX; count <= 1000; count += 1000 - TASK_STEPS_MAX) {
        AUTO_BUFFER json = {0};
        buffer_append_str(&json, "{\"task\":\"t\"," THERE ",\"steps\":[");
        for (int i = 0; i < count; i++)
            buffer_printf(&json, "%s{\"name\":\"%d\",\"prompt\":\"p\"}", i ? "," : "", i);
        buffer_append_str(&json, "]}");
        if (count > TASK_STEPS_MAX) {
            assert_refused_slice(buffer_peek(&json), REFUSAL_TOO_LARGE, "steps");
            continue;
        }
        struct refusal no = {0};
        AUTO_TASK task = task_parse(buffer_peek(&json), &no);
        assert_non_null(task);
    }
}

static void what_each_step_has_of_its_own_the_task_must_not_have(void **state)
{
    static const char step[] = "\"steps\":[{\"name\":\"a\",\"prompt\":\"p\"}]," THERE;
    const struct {
        const char *more;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {{"\"prompt\":\"p\"", REFUSAL_AMBIGUOUS, "steps"},
                {"\"messages\":[{\"role\":\"user\",\"content\":\"p\"}]", REFUSAL_AMBIGUOUS, "steps"},
                {"\"solution\":{\"commands\":[\"true\"]}", REFUSAL_AMBIGUOUS, "solution"},
                {"\"agent\":{\"script\":[{\"tool\":\"bash\",\"arguments\":{}}]}", REFUSAL_BAD_TASK, "agent.kind"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[512];
        snprintf(json, sizeof(json), "{\"task\":\"t\",%s,%s}", rows[i].more, step);
        assert_refused(json, rows[i].reason, rows[i].field);
    }
    assert_refused("{\"task\":\"t\",\"prompt\":\"p\",\"steps_reward\":\"final\"}", REFUSAL_BAD_TASK, "steps_reward");
}

static void they_are_evaluated_by_what_can_judge_a_sandbox(void **state)
{
    static const char step[] = "{\"task\":\"t\",\"steps\":[{\"name\":\"a\",\"prompt\":\"p\"}]";
    const struct {
        const char *eval, *field;
    } rows[] = {{"", "eval.kind"},
                {",\"eval\":{\"kind\":\"math\",\"answer\":\"1\"}", "eval.kind"},
                {",\"eval\":{\"kind\":\"math\",\"answer\":\"1\",\"sandbox\":\"agent\"}", "eval.sandbox"},
                {",\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\",\"trust\":\"image\"}", "eval.trust"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[512];
        snprintf(json, sizeof(json), "%s%s}", step, rows[i].eval);
        assert_refused(json, REFUSAL_BAD_TASK, rows[i].field);
    }
}

#define FRESH                                                                                                          \
    "\"eval\":{\"kind\":\"verifier\",\"artifacts\":[\"a\"],\"image\":\"/i\",\"network\":[\"g\"],\"user\":\"u\"}"
#define OWN(eval) "{\"name\":\"a\",\"prompt\":\"p\",\"eval\":{" eval "}}"

static void a_step_says_in_what_sandbox_it_is_evaluated(void **state)
{
    static const char json[] = "{\"task\":\"t\"," FRESH
                               ",\"limits\":{\"eval_s\":9},\"steps\":[{\"name\":\"b\",\"prompt\":"
                               "\"p\"}," OWN("\"sandbox\":\"agent\"") "]}";
    static const char own[] = "{\"task\":\"t\"," FRESH ",\"limits\":{\"eval_s\":9},\"steps\":[" OWN(
        "\"artifacts\":[],\"build\":{\"dockerfile\":\"FROM x\",\"timeout_s\":7},\"user\":\"v\",\"network\":[]") "]}";
    struct task_step_view view;
    AUTO_TASK task = parse(json);
    AUTO_TASK other = parse(own);
    AUTO_BUFFER text = {0}, second = {0};
    (void)state;
    assert_true(task_is_evaluated_by_run(task) && task_step_is_apart(task, 0) && !task_step_is_apart(task, 1));
    assert_true(task_step_view(task, 1, &view));
    assert_true(task_is_evaluated_there(&view.task));
    assert_null(view.task.artifacts.each);
    assert_null(view.task.eval_image);
    assert_null(view.task.eval_user);
    assert_int_equal(view.task.eval_grant_count, 0);
    task_step_view_finish(&view);
    assert_true(task_step_text(slice_from_str(json), 1, &text));
    if (!slice_is(buffer_peek(&text),
                  "{\"task\":\"t\",\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\"},\"limits\":{"
                  "\"eval_s\":9},\"step\":\"a\",\"prompt\":\"p\"}"))
        fail_msg("%.*s", SLICE_ARG(buffer_peek(&text)));
    assert_int_equal(task_after_run_s(task), (TASK_STEP_APART_S + 9) + (TASK_STEP_CHANGE_S + 9));
    assert_true(task_step_view(other, 0, &view));
    assert_true(view.task.artifacts.each && view.task.artifacts.count == 0);
    assert_null(view.task.eval_image);
    assert_string_equal(view.task.eval_build.dockerfile, "FROM x");
    assert_string_equal(view.task.eval_user, "v");
    assert_int_equal(view.task.eval_grant_count, 0);
    task_step_view_finish(&view);
    assert_true(task_step_text(slice_from_str(own), 0, &second));
    assert_null(memmem(second.data, second.len, "image", 5));
    assert_int_equal(task_after_run_s(other), TASK_STEP_APART_S + 9 + 7);
}

static void what_its_sandbox_cannot_have_is_refused_by_the_steps_field(void **state)
{
    const struct {
        const char *eval;
        enum refusal_reason reason;
        const char *field;
    } rows[] = {
        {"\"artifacts\":[\"a\"]", REFUSAL_BAD_TASK, "steps[0].eval.artifacts"},
        {"\"network\":[\"g\"]", REFUSAL_BAD_TASK, "steps[0].eval.network"},
        {"\"user\":\"x\"", REFUSAL_BAD_TASK, "steps[0].eval.user"},
        {"\"sandbox\":\"fresh\",\"image\":\"/i\"", REFUSAL_MISSING_FIELD, "steps[0].eval.artifacts"},
        {"\"sandbox\":\"fresh\",\"artifacts\":[],\"image\":\"/i\",\"build\":{\"dockerfile\":\"FROM x\"}",
         REFUSAL_AMBIGUOUS, "steps[0].eval.build.dockerfile"},
        {"\"sandbox\":\"fresh\",\"artifacts\":[\"/tests/a\"]", REFUSAL_BAD_TASK, "steps[0].eval.artifacts[0].path"},
        {"\"sandbox\":\"fresh\",\"artifacts\":[\"../a\"]", REFUSAL_BAD_TASK, "steps[0].eval.artifacts[0].path"},
        {"\"sandbox\":\"fresh\",\"build\":{\"context\":\"/c\"}", REFUSAL_MISSING_FIELD,
         "steps[0].eval.build.dockerfile"},
        {"\"sandbox\":\"mine\"", REFUSAL_BAD_TASK, "steps[0].eval.sandbox"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[512];
        snprintf(json, sizeof(json), STEPS(OWN("%s")), rows[i].eval);
        assert_refused(json, rows[i].reason, rows[i].field);
    }
    AUTO_TASK elsewhere = parse(STEPS(OWN("\"sandbox\":\"fresh\",\"files\":{\"/home/x\":\"\"}")));
    assert_int_equal(elsewhere->steps[0].eval.files.count, 1); /* no agent finds it */
}

#define ONE(more) STEPS("{\"name\":\"a\",\"prompt\":\"p\"," more "}")

static void the_evaluators_files_lie_where_they_can_be_taken_away(void **state)
{
    (void)state;
    AUTO_TASK good = parse(ONE("\"eval\":{\"files\":[{\"path\":\"/tests\",\"source\":\"/s\"}]}"));
    assert_int_equal(good->steps[0].eval.files.count, 1);
    assert_refused(ONE("\"eval\":{\"files\":{\"/testsuite/x\":\"\"}}"), REFUSAL_BAD_TASK,
                   "steps[0].eval.files[0].path");
    assert_refused("{\"task\":\"t\",\"steps\":[{\"name\":\"a\",\"prompt\":\"p\"}],\"eval\":{\"kind\":\"verifier\","
                   "\"sandbox\":\"agent\",\"files\":{\"/tests/a\":\"\",\"b\":\"\"}}}",
                   REFUSAL_BAD_TASK, "eval.files[1].path");
}

static void the_least_reward_is_a_number_or_one_of_each_part(void **state)
{
    (void)state;
    AUTO_TASK number = parse(ONE("\"min_reward\":-1"));
    assert_int_equal(number->steps[0].min_reward.count, 1);
    assert_string_equal(number->steps[0].min_reward.each[0].name, "reward");
    assert_true(number->steps[0].min_reward.each[0].value == -1);
    AUTO_TASK parts = parse(ONE("\"min_reward\":{\"safe\":1,\"fast\":0.5}"));
    assert_int_equal(parts->steps[0].min_reward.count, 2);
    assert_refused(ONE("\"min_reward\":{}"), REFUSAL_TOO_SMALL, "steps[0].min_reward");
    assert_refused(ONE("\"min_reward\":\"1\""), REFUSAL_WRONG_TYPE, "steps[0].min_reward");
    assert_refused(ONE("\"min_reward\":{\"a\":true}"), REFUSAL_WRONG_TYPE, "steps[0].min_reward");
    assert_refused(ONE("\"min_reward\":{\"\":1}"), REFUSAL_TOO_SMALL, "steps[0].min_reward");
}

static void a_command_may_be_every_steps_own(void **state)
{
    (void)state;
#define COMMAND(more)                                                                                                  \
    "{\"task\":\"t\",\"eval\":{\"kind\":\"command\",\"sandbox\":\"agent\"},\"steps\":[{\"name\":\"a\",\"prompt\":"     \
    "\"p\",\"eval\":{\"command\":\"true\"}}" more "]}"
    AUTO_TASK task = parse(COMMAND(""));
    assert_string_equal(task->steps[0].eval.command, "true");
    assert_refused(COMMAND(",{\"name\":\"b\",\"prompt\":\"p\"}"), REFUSAL_MISSING_FIELD, "eval.command");
    assert_refused("{\"task\":\"t\",\"eval\":{\"kind\":\"mine\",\"sandbox\":\"agent\"},\"steps\":[{\"name\":\"a\","
                   "\"prompt\":\"p\",\"eval\":{\"command\":\"true\"}}]}",
                   REFUSAL_BAD_TASK, "steps[0].eval.command");
}

static void what_a_step_collects_is_behind_what_all_collect(void **state)
{
    struct task_step_view view;
    AUTO_BUFFER text = {0};
    static const char json[] =
        "{\"task\":\"t\",\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\",\"collect\":[{\"command\":\"all\","
        "\"timeout_s\":3}]},\"limits\":{\"eval_s\":50},\"steps\":[{\"name\":\"a\",\"prompt\":\"p\"},{\"name\":\"b\","
        "\"prompt\":\"p\",\"eval\":{\"collect\":[{\"command\":\"own\",\"user\":\"root\"}]}}]}";
    AUTO_TASK task = parse(json);
    (void)state;
    assert_int_equal(task_after_run_s(task), 2 * (TASK_STEP_CHANGE_S + 50 + 3) + 60);
    assert_true(task_step_view(task, 0, &view));
    assert_int_equal(view.task.collect.count, 1);
    task_step_view_finish(&view);
    assert_true(task_step_view(task, 1, &view));
    assert_int_equal(view.task.collect.count, 2);
    assert_string_equal(view.task.collect.each[0].command, "all");
    assert_string_equal(view.task.collect.each[1].user, "root");
    task_step_view_finish(&view);
    assert_true(task_step_text(slice_from_str(json), 1, &text));
    const char *said = "\"collect\":[{\"command\":\"all\",\"timeout_s\":3},{\"command\":\"own\",\"user\":\"root\"}]";
    assert_non_null(memmem(text.data, text.len, said, strlen(said)));
    assert_refused(ONE("\"eval\":{\"collect\":[{}]}"), REFUSAL_MISSING_FIELD, "steps[0].eval.collect[0].command");
}

static void an_oracle_needs_a_step_with_a_solution(void **state)
{
    (void)state;
#define ORACLE(more)                                                                                                   \
    "{\"task\":\"t\",\"agent\":{\"kind\":\"oracle\"}," THERE ",\"steps\":[{\"name\":\"a\",\"prompt\":\"p\"" more "}]}"
    AUTO_TASK task = parse(ORACLE(",\"solution\":{\"commands\":[\"true\"]}"));
    assert_true(task_has_solution(task));
    assert_refused(ORACLE(""), REFUSAL_MISSING_FIELD, "solution");
}

/* ---- as tasks of their own ------------------------------------------------------------------------ */

static const char whole[] =
    "{\"task\":\"t\",\"user\":\"root\",\"files\":{\"base\":\"x\"},\"setup\":[\"true\"],\"limits\":{\"run_s\":100,"
    "\"eval_s\":50,\"init_s\":7},\"eval\":{\"kind\":\"verifier\",\"sandbox\":\"agent\",\"files\":{\"/tests/a\":\"1\"},"
    "\"env\":{\"A\":\"1\"}},\"steps_reward\":\"final\",\"steps\":[{\"name\":\"one\",\"prompt\":\"p\"},{\"name\":"
    "\"two\","
    "\"prompt\":\"q\",\"files\":[{\"path\":\"f\",\"text\":\"y\"}],\"setup\":[\"date\"],\"solution\":{\"commands\":["
    "\"s\"],"
    "\"answer\":\"w\"},\"eval\":{\"command\":\"c\",\"files\":[{\"path\":\"/tests/"
    "b\",\"text\":\"2\"}],\"env\":{\"B\":\"2\"}},"
    "\"limits\":{\"run_s\":20,\"eval_s\":30}}]}";

static void a_step_says_what_it_says_and_else_what_the_task_says(void **state)
{
    struct task_step_view view;
    AUTO_TASK task = parse(whole);
    (void)state;
    assert_true(task_step_view(task, 0, &view));
    assert_string_equal(view.task.messages[0].content, "p");
    assert_int_equal(view.task.file_count + view.task.setup_count + view.task.step_count, 0);
    assert_null(view.task.eval_command);
    assert_int_equal(view.task.eval_file_count, 1);
    assert_int_equal(view.task.limits.eval_s, 50);
    assert_string_equal(view.task.eval_env.each[0], "A=1");
    task_step_view_finish(&view);
    assert_true(task_step_view(task, 1, &view));
    assert_string_equal(view.task.messages[0].role, "user");
    assert_string_equal(view.task.setup[0], "date");
    assert_string_equal(view.task.eval_command, "c");
    assert_int_equal(view.task.eval_file_count, 2);
    assert_string_equal(view.task.eval_files[1].path, "/tests/b");
    assert_string_equal(view.task.eval_env.each[0], "B=2");
    assert_string_equal(view.task.solution_answer, "w");
    assert_int_equal(view.task.limits.run_s, 20);
    assert_int_equal(view.task.limits.eval_s, 30);
    task_step_view_finish(&view);
}

static void expect_text(size_t i, const char *text)
{
    AUTO_BUFFER ret = {0};
    assert_true(task_step_text(slice_from_str(whole), i, &ret));
    if (!slice_is(buffer_peek(&ret), text))
        fail_msg("%.*s\nand not %s", SLICE_ARG(buffer_peek(&ret)), text);
}

static void its_text_says_the_same(void **state)
{
    (void)state;
    expect_text(0, "{\"task\":\"t\",\"user\":\"root\",\"limits\":{\"run_s\":100,\"eval_s\":50,\"init_s\":7},\"eval\":{"
                   "\"kind\":\"verifier\",\"sandbox\":\"agent\",\"files\":{\"/tests/a\":\"1\"},\"env\":{\"A\":\"1\"}},"
                   "\"step\":\"one\",\"prompt\":\"p\"}");
    expect_text(1,
                "{\"task\":\"t\",\"user\":\"root\",\"files\":[{\"path\":\"f\",\"text\":\"y\"}],\"setup\":[\"date\"],"
                "\"limits\":{\"run_s\":20,\"eval_s\":30,\"init_s\":7},\"eval\":{\"kind\":\"verifier\",\"sandbox\":"
                "\"agent\",\"files\":[{\"path\":\"/tests/a\",\"text\":\"1\"},{\"path\":\"/tests/b\",\"text\":\"2\"}],"
                "\"env\":{\"B\":\"2\"},\"command\":\"c\"},\"step\":\"two\",\"prompt\":\"q\",\"solution\":{"
                "\"commands\":[\"s\"],\"answer\":\"w\"}}");
}

static void a_run_may_take_longer_by_all_that_is_not_the_agents(void **state)
{
    (void)state;
    AUTO_TASK task = parse(whole);
    assert_int_equal(task_after_run_s(task), (TASK_STEP_CHANGE_S + 50) + (TASK_STEP_CHANGE_S + 7 + 30));
    AUTO_TASK plain = parse("{\"task\":\"t\",\"prompt\":\"p\"," THERE ",\"limits\":{\"eval_s\":9}}");
    assert_int_equal(task_after_run_s(plain), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_take_the_place_of_a_prompt),
        cmocka_unit_test(a_step_has_a_name_of_its_own_and_a_prompt),
        cmocka_unit_test(there_are_at_most_so_many),
        cmocka_unit_test(what_each_step_has_of_its_own_the_task_must_not_have),
        cmocka_unit_test(they_are_evaluated_by_what_can_judge_a_sandbox),
        cmocka_unit_test(a_step_says_in_what_sandbox_it_is_evaluated),
        cmocka_unit_test(what_its_sandbox_cannot_have_is_refused_by_the_steps_field),
        cmocka_unit_test(the_evaluators_files_lie_where_they_can_be_taken_away),
        cmocka_unit_test(the_least_reward_is_a_number_or_one_of_each_part),
        cmocka_unit_test(a_command_may_be_every_steps_own),
        cmocka_unit_test(what_a_step_collects_is_behind_what_all_collect),
        cmocka_unit_test(an_oracle_needs_a_step_with_a_solution),
        cmocka_unit_test(a_step_says_what_it_says_and_else_what_the_task_says),
        cmocka_unit_test(its_text_says_the_same),
        cmocka_unit_test(a_run_may_take_longer_by_all_that_is_not_the_agents),
    };
    return cmocka_run_group_tests_name("steps of a task", tests, NULL, NULL);
}
