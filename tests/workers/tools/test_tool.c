/* The contract of tools: the table, the check of arguments, their description, the toolbox. */
#include "tests/workers/tools/tool_world.h"
#include "workers/tools/arguments.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

static void check_says(const char *tool, const char *arguments, const char *words)
{
    char text[512] = "";
    json_t *json = json_of(arguments);
    bool good = tool_check(tool_find(tool), json, text, sizeof(text));
    json_decref(json);
    if (good != (words == NULL) || (words && strcmp(text, words) != 0))
        fail_msg("%s %s: %s", tool, arguments, good ? "taken" : text);
}

/* ---- rows ------------------------------------------------------------------------------- */

static void every_tool_is_described_by_a_schema_of_its_own_rows(void **state)
{
    (void)state;
    for (size_t i = 0; tool_at(i); i++) {
        const struct tool *tool = tool_at(i);
        assert_ptr_equal(tool_find(tool->name), tool);
        json_t *json = tool_describe(tool);
        const char *name, *doc, *type;
        json_t *properties, *required;
        assert_int_equal(json_unpack(json, "{s:s, s:{s:s, s:s, s:{s:s, s:o, s:o}}}", "type", &type, "function", "name",
                                     &name, "description", &doc, "parameters", "type", &type, "properties", &properties,
                                     "required", &required),
                         0);
        assert_string_equal(name, tool->name);
        assert_true(strlen(doc) > 20);
        size_t count = 0, needed = 0;
        for (const struct tool_argument *at = tool->arguments; at->name; at++, count++) {
            json_t *property = json_object_get(properties, at->name);
            assert_true(json_string_length(json_object_get(property, "description")) > 3);
            assert_non_null(json_object_get(property, "type"));
            needed += at->required;
        }
        assert_true(count < TOOL_ARGUMENTS_MAX);
        assert_int_equal(json_object_size(properties), count);
        assert_int_equal(json_array_size(required), needed);
        json_decref(json);
    }
}

static void a_schema_says_types_bounds_and_what_is_required(void **state)
{
    (void)state;
    json_t *json = tool_describe(tool_find("think"));
    AUTO_FREE char *text = json_dumps(json, 0);
    assert_non_null(strstr(text, "\"parameters\": {\"type\": \"object\", \"properties\": {\"thought\": {\"type\": "
                                 "\"string\", \"description\": \"What you think.\", \"minLength\": 1, \"maxLength\": "
                                 "65536}}, \"required\": [\"thought\"]}"));
    json_decref(json);
}

/* ---- calls ------------------------------------------------------------------------------ */

static void a_wrong_call_is_told_exactly_what_is_wrong(void **state)
{
    (void)state;
    check_says("think", "{'thought': 'x'}", NULL);
    check_says("submit", "{}", NULL);
    check_says("submit", "{'answer': null}", NULL);
    check_says("bash", "{'command': 'ls', 'timeout_s': 5}", NULL);
    check_says("think", "{}", "think: the argument thought is missing.");
    check_says("think", "{'thought': null}", "think: the argument thought is missing.");
    check_says("think", "['x']", "think: the arguments must be a JSON object.");
    check_says("think", "'x'", "think: the arguments must be a JSON object.");
    check_says("think", "{'thought': 7}", "think: the argument thought must be a string, not an integer.");
    check_says("think", "{'thought': ''}", "think: the argument thought is 0 characters; the minimum is 1.");
    check_says("think", "{'thought': 'x', 'mood': 'y'}", "think has no argument \"mood\". Its arguments are: thought.");
    check_says("bash", "{'command': 'ls', 'timeout_s': 0}", "bash: the argument timeout_s is 0; the minimum is 1.");
    check_says("bash", "{'command': 'ls', 'timeout_s': 100000}",
               "bash: the argument timeout_s is 100000; the maximum is 86400.");
    check_says("bash", "{'command': 'ls', 'timeout_s': '5'}",
               "bash: the argument timeout_s must be an integer, not a string.");
    check_says("bash", "{'command': 'ls', 'timeout_s': 1.5}",
               "bash: the argument timeout_s must be an integer, not a number with a fraction.");
}

static void lengths_are_counted_in_characters(void **state)
{
    (void)state;
    char text[512], *long_one = malloc(2 * 65537 + 1);
    for (size_t i = 0; i < 65537; i++)
        memcpy(long_one + 2 * i, "\xc3\xa9", 2);
    long_one[2 * 65536] = '\0';
    json_t *json = json_pack("{s:s}", "thought", long_one);
    assert_true(tool_check(tool_find("think"), json, text, sizeof(text)));
    json_decref(json);
    long_one[2 * 65536] = 'x';
    long_one[2 * 65536 + 1] = '\0';
    json = json_pack("{s:s}", "thought", long_one);
    assert_false(tool_check(tool_find("think"), json, text, sizeof(text)));
    assert_string_equal(text, "think: the argument thought is 65537 characters; the maximum is 65536.");
    json_decref(json);
    free(long_one);
}

/* ---- the toolbox -------------------------------------------------------------------------- */

static void tools_that_cannot_be_had_are_refused_with_words(void **state)
{
    (void)state;
    struct toolbox box = {.limits = &limits};
    struct fail fail = {0};
    assert_int_equal(toolbox_add(&box, "hammer", &fail), -EINVAL);
    assert_string_equal(fail.text, "there is no tool \"hammer\"");
    assert_int_equal(toolbox_add(&box, "bash", &fail), -EINVAL);
    assert_string_equal(fail.text, "the tool bash needs a sandbox");
    assert_int_equal(toolbox_add(&box, "think", &fail), 0);
    assert_int_equal(toolbox_add(&box, "think", &fail), -EINVAL);
    assert_string_equal(fail.text, "the tool think exists already");
    assert_int_equal(box.count, 1);
    toolbox_close(&box);
}

static void the_nearest_tool_is_the_one_whose_name_is_most_alike(void **state)
{
    (void)state;
    static const struct {
        const char *name, *nearest;
    } rows[] = {
        {"think", "think"},    {"Submit", "submit"},           {"sbumit", "submit"}, {"submit_answer", "submit"},
        {"thinking", "think"}, {"functions.submit", "submit"}, {"", "think"},
    };
    struct toolbox box = {.limits = &limits};
    assert_null(toolbox_nearest(&box, "think"));
    assert_int_equal(toolbox_add(&box, "think", NULL), 0);
    assert_int_equal(toolbox_add(&box, "submit", NULL), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_string_equal(toolbox_nearest(&box, rows[i].name)->name, rows[i].nearest);
    toolbox_close(&box);
}

static void wrong_calls_are_answered_and_right_ones_still_work(void **state)
{
    (void)state;
    struct toolbox box = {.limits = &limits};
    assert_int_equal(toolbox_add(&box, "think", NULL), 0);
    assert_int_equal(toolbox_add(&box, "submit", NULL), 0);
    expect_call(&box, "saw", "{}", true,
                "There is no tool \"saw\"; think is the nearest. The tools are: think, submit.");
    expect_call(&box, "think", "{}", true, "think: the argument thought is missing.");
    expect_call(&box, "think", "{'thought': 'hm'}", false, "Noted.");
    struct tool_result result = call(&box, "submit", "{'answer': '42'}");
    assert_true(result.is_final);
    assert_string_equal(result.answer, "42");
    tool_result_finish(&result);
    toolbox_close(&box);
}

FIBER_TEST(a_tool_is_opened_by_its_first_call_and_keeps_its_state)
{
    struct sandbox *sandbox = open_host();
    struct toolbox box = {.sandbox = sandbox, .limits = &limits};
    assert_int_equal(toolbox_add(&box, "bash", NULL), 0);
    expect_call(&box, "bash", "{'command': ''}", true, "bash: the argument command is 0 characters; the minimum is 1.");
    assert_null(box.states[0]);
    expect_call(&box, "bash", "{'command': 'cd /tmp; x=7'}", false, "(no output)");
    expect_call(&box, "bash", "{'command': 'echo $PWD $x'}", false, "/tmp 7\n");
    struct tool_result result = call(&box, "bash", "{'command': 'echo oh; exit 3'}");
    assert_int_equal(result.status, 3);
    assert_true(result.is_error);
    tool_result_finish(&result);
    toolbox_close(&box);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_sandbox_that_ends_is_an_error_and_no_answer)
{
    struct sandbox *sandbox = open_host();
    struct toolbox box = {.sandbox = sandbox, .limits = &limits};
    struct tool_result result;
    struct fail fail = {0};
    assert_int_equal(toolbox_add(&box, "bash", NULL), 0);
    json_t *json = json_of("{'command': 'head -c 2G /dev/zero | tail'}");
    assert_int_equal(toolbox_call(&box, "bash", json, &result, &fail), -EIO);
    assert_string_equal(fail.text, "the sandbox used more than its 512 MiB of memory and was killed");
    json_decref(json);
    toolbox_close(&box);
    sandbox_close(&sandbox);
}

FIBER_TEST(commands_and_cells_are_counted_with_the_limits_that_they_reached)
{
    static const char *const names[] = {"bash", "ipython", NULL};
    struct sandbox_plan plan = host_plan();
    struct toolbox box = open_tools(&plan, names);
    struct sandbox_usage usage;
    expect_call(&box, "bash", "{'command': 'echo hi'}", false, "hi\n");
    expect_call(&box, "ipython", "{'code': 'print(7)'}", false, "7\n");
    struct tool_result result = call(&box, "ipython", "{'code': 'while True: pass', 'timeout_s': 1}");
    assert_true(result.timed_out);
    tool_result_finish(&result);
    result = call(&box, "ipython", "{'code': 'print(chr(120) * 2000000)'}");
    assert_int_equal(result.total, 2000001);
    tool_result_finish(&result);
    sandbox_get_usage(box.sandbox, &usage);
    assert_int_equal(usage.commands, 4);
    assert_int_equal(usage.timed_out, 1);
    assert_int_equal(usage.breaches[LIMIT_COMMAND_TIME], 1);
    assert_int_equal(usage.breaches[LIMIT_OUTPUT], 1);
    assert_in_range(usage.output_bytes, 2000001, 2010000);
    close_tools(&box);
}

FIBER_TEST(an_agent_that_removes_bash_is_told_and_goes_on)
{
    char image[128], command[512];
    make_dir(image, sizeof(image), "image");
    snprintf(command, sizeof(command),
             "cp -L --parents /bin/bash /bin/rm $(ldd /bin/bash /bin/rm | grep -o '/[^ ]*' | grep "
             "-v :) %s",
             image);
    assert_int_equal(system(command), 0);
    struct sandbox_plan plan = host_plan();
    static const char *const names[] = {"bash", NULL};
    plan.image = image;
    struct toolbox box = open_tools(&plan, names);
    expect_call(&box, "bash", "{'command': 'echo hi; rm /bin/bash'}", false, "hi\n");
    expect_call(&box, "bash", "{'command': 'exit 0'}", false,
                "[the shell ended; no new one starts: cannot execute /bin/bash: No such file or "
                "directory]\n");
    expect_call(&box, "bash", "{'command': 'echo hi'}", true,
                "bash: no shell can be started: cannot execute /bin/bash: No such file or directory.");
    expect_call(&box, "bash", "{'restart': true}", true,
                "bash: no shell can be started: cannot execute /bin/bash: No such file or directory.");
    close_tools(&box);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tool_is_described_by_a_schema_of_its_own_rows),
        cmocka_unit_test(a_schema_says_types_bounds_and_what_is_required),
        cmocka_unit_test(a_wrong_call_is_told_exactly_what_is_wrong),
        cmocka_unit_test(lengths_are_counted_in_characters),
        cmocka_unit_test(tools_that_cannot_be_had_are_refused_with_words),
        cmocka_unit_test(the_nearest_tool_is_the_one_whose_name_is_most_alike),
        cmocka_unit_test(wrong_calls_are_answered_and_right_ones_still_work),
        TEST(a_tool_is_opened_by_its_first_call_and_keeps_its_state),
        TEST(a_sandbox_that_ends_is_an_error_and_no_answer),
        TEST(commands_and_cells_are_counted_with_the_limits_that_they_reached),
        TEST(an_agent_that_removes_bash_is_told_and_goes_on),
    };
    return cmocka_run_group_tests_name("tool", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
