/* In whose turns the agent that calls tools tells what they gave: by the template, the form and the
 * task; and what that means for the traces. Over a scripted engine and real sandboxes. */
#include "tests/workers/agents/agent_world.h"

#define BASH(command)                                                                                                  \
    "<tool_call>\\n{\\\"name\\\": \\\"bash\\\", \\\"arguments\\\": {\\\"command\\\": \\\"" command                     \
    "\\\"}}\\n</tool_call>"
#define LLAMA_BASH(command) "{\\\"name\\\": \\\"bash\\\", \\\"parameters\\\": {\\\"command\\\": \\\"" command "\\\"}}"
#define OPENHANDS_LS "<function=bash>\\n<parameter=command>echo $((6*7))</parameter>\\n</function>"

static struct world world;

#define TELLING(format, role)                                                                                          \
    "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'tools': ['bash'], 'form': '" format                      \
    "', 'tool_role': '" role "'}}"
#define TEMPLATE(name, calls) "{'context': 32768, 'template': '" name "', 'rules': [{'replies': ['" calls "', '.']}]}"
#define TWO_BASH BASH("echo $((6*7))") BASH("printf 43")
#define TWO_LLAMA LLAMA_BASH("echo $((6*7))") "; " LLAMA_BASH("printf 43")

static const struct {
    const char *script, *task, *role, *told;
} tellings[] = {
    {TEMPLATE("chatml", TWO_BASH), TELLING("hermes", "auto"), "user",
     "\nuser\n<tool_response>\n42\n</tool_response>\n<tool_response>\n43\n</"
     "tool_response>\nassistant\n"},
    {TEMPLATE("qwen", TWO_BASH), TELLING("hermes", "auto"), "tool",
     "\nuser\n<tool_response>\n42\n</tool_response>\n<tool_response>\n43\n</"
     "tool_response>\nassistant\n"},
    {TEMPLATE("qwen", TWO_BASH), TELLING("hermes", "user"), "user",
     "\nuser\n<tool_response>\n42\n</tool_response>\n<tool_response>\n43\n</"
     "tool_response>\nassistant\n"},
    {TEMPLATE("chatml", TWO_BASH), TELLING("hermes", "tool"), "tool",
     "\ntool\n<tool_response>\n42\n</tool_response>\ntool\n<tool_response>\n43\n</"
     "tool_response>\nassistant\n"},
    {TEMPLATE("ipython", TWO_LLAMA), TELLING("llama", "auto"), "tool", "\nipython\n42\nipython\n43\nassistant\n"},
    {TEMPLATE("chatml", TWO_LLAMA), TELLING("llama", "auto"), "user",
     "\nuser\nResult of bash:\n42\n\nResult of bash:\n43\n\nassistant\n"},
    {TEMPLATE("qwen", OPENHANDS_LS), TELLING("openhands", "auto"), "user",
     "\nuser\nEXECUTION RESULT of [bash]:\n42\n\nassistant\n"},
    {TEMPLATE("no_tools", TWO_BASH), TELLING("hermes", "auto"), "user",
     "\nuser\n<tool_response>\n42\n</tool_response>\n<tool_response>\n43\n</"
     "tool_response>\nassistant\n"},
    {TEMPLATE("one_tool", TWO_LLAMA), TELLING("llama", "auto"), "user",
     "\nuser\nResult of bash:\n42\n\nResult of bash:\n43\n\nassistant\n"},
};

static void results_are_the_tools_where_the_template_has_what_the_models_know(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tellings); i++) {
        world_open_on(&world, loop, tellings[i].script, NULL);
        struct attempt attempt = {.json = tellings[i].task};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, OUTCOME_OK, "2 turns");
        assert_int_equal(attempt.record.trace_count, 1);
        AUTO_FREE char *told = turn_text(&attempt.record, tellings[i].role, 0);
        assert_string_equal(told, tellings[i].told);
        assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "42\n");
        assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

/* What it thought before a call stays where a tool answers, and goes where the user does. */
static void thinking_before_a_call_is_kept_where_the_template_keeps_it_for_tools(void **state)
{
    (void)state;
    static const char script[] = TEMPLATE("qwen3", "<think>\\nhm\\n</think>\\n\\n" BASH("echo hi"));
    static const struct {
        const char *task;
        size_t traces;
    } cases[] = {{TELLING("hermes", "auto"), 1}, {TELLING("hermes", "user"), 2}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        world_open_on(&world, loop, script, NULL);
        struct attempt attempt = {.json = cases[i].task};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, OUTCOME_OK, "2 turns");
        assert_int_equal(attempt.record.trace_count, cases[i].traces);
        assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

/* The user's turn is the first to change a reply that tools have answered. */
static void what_tools_kept_starts_a_new_trace_when_the_user_speaks(void **state)
{
    (void)state;
    world_open_on(&world, loop,
                  "{'context': 32768, 'template': 'qwen3', 'rules': [{'replies': "
                  "['<think>\\nhm\\n</think>\\n\\n" BASH("echo hi") "', '" BASH(
                      "echo ho") "', '<tool_call>{bad</tool_call>', 'Done.']}]}",
                  NULL);
    struct attempt attempt = {.json = TELLING("hermes", "auto")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "4 turns");
    assert_int_equal(count_turns(&attempt.record, "tool"), 2);
    assert_int_equal(attempt.record.trace_count, 2);
    assert_memory_equal(attempt.record.traces[1].reason, "rewrite: ", 9);
    assert_record_is_the_log(&attempt.record, &world);
    attempt_finish(&attempt);
    world_close(&world);
}

/* A template without the form's mark costs one look at it, of all rollouts together. */
static void a_template_without_the_mark_is_looked_at_once(void **state)
{
    (void)state;
    world_open_on(&world, loop, TEMPLATE("chatml", ""), NULL);
    size_t templates[2];
    for (size_t i = 0; i < 2; i++) {
        struct attempt attempt = {.json = TELLING("hermes", "auto")};
        attempt_run(&world, &attempt);
        json_t *log = world_log(&world);
        templates[i] = log_count(log, "/apply-template");
        json_decref(log);
        attempt_finish(&attempt);
    }
    assert_int_equal(templates[0], 2); /* the prompt, and the look */
    assert_int_equal(templates[1], 3);
    world_close(&world);
}

static void a_role_that_the_template_has_not_is_the_tasks_fault(void **state)
{
    (void)state;
    world_open_on(&world, loop, TEMPLATE("no_tools", TWO_BASH), NULL);
    struct attempt attempt = {.json = TELLING("hermes", "tool")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_TASK, "refuses");
    attempt_finish(&attempt);
    world_close(&world);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(results_are_the_tools_where_the_template_has_what_the_models_know),
        TEST(thinking_before_a_call_is_kept_where_the_template_keeps_it_for_tools),
        TEST(what_tools_kept_starts_a_new_trace_when_the_user_speaks),
        TEST(a_template_without_the_mark_is_looked_at_once),
        TEST(a_role_that_the_template_has_not_is_the_tasks_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
