/* The agents that call tools, over a scripted engine and real sandboxes: how each may end, what is
 * recorded, and that the tokens are what the engine saw. */
#include "tests/workers/agents/agent_world.h"

#define CALL(name, arguments)                                                                                          \
    "<tool_call>\\n{\\\"name\\\": \\\"" name "\\\", \\\"arguments\\\": " arguments "}\\n</tool_call>"
#define BASH(command) CALL("bash", "{\\\"command\\\": \\\"" command "\\\"}")
#define SUBMIT(answer) CALL("submit", "{\\\"answer\\\": \\\"" answer "\\\"}")
#define RULES(replies) "{'context': 32768, 'rules': [{'replies': [" replies "]}]}"
#define TASK(more)                                                                                                     \
    "{'task': 't', 'prompt': 'make it', 'agent': {'kind': 'tools', 'tools': ['bash', 'think', "                        \
    "'submit']}" more "}"

static struct world world;

/* ---- tools: ways to end -------------------------------------------------------------------- */

static const struct ending {
    const char *script, *task;
    enum outcome outcome;
    const char *words, *answer;
    size_t sampled, told; /* turns */
} endings[] = {
    {RULES("'" BASH("echo hi") "', '" SUBMIT("42") "'"), TASK(""), OUTCOME_OK, "2 turns", "42", 2, 1},
    {RULES("'" BASH("echo hi") "', 'It says hi.'"), TASK(""), OUTCOME_OK, "2 turns", "It says hi.", 2, 1},
    {RULES("'Nothing to do.'"), TASK(""), OUTCOME_OK, "1 turn", "Nothing to do.", 1, 0},
    {RULES("'" BASH("exit 1") SUBMIT("x") BASH("touch never") "'"), TASK(""), OUTCOME_OK, "1 turn", "x", 1, 0},
    {RULES("'<tool_call>{bad</tool_call>'"), TASK(""), OUTCOME_AGENT, "format: 4 replies", NULL, 4, 3},
    {RULES("'" CALL("dance", "{}") "'"), TASK(""), OUTCOME_AGENT, "format: 4 replies", NULL, 4, 3},
    {RULES("'<think>hm'"), "{'task': 't', 'prompt': 'x', 'agent': {'tools': ['think'], 'max_format_errors': 1}}",
     OUTCOME_AGENT, "format: 2 replies", NULL, 2, 1},
    {RULES("'<function=bash>', '" BASH("true") "', '<function=bash>', '.'"),
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'max_format_errors': 1}}", OUTCOME_OK, "4 turns", ".", 4,
     3},
    {RULES("'<tool_call>{bad</tool_call>', '" SUBMIT("learnt") "'"), TASK(""), OUTCOME_OK, "2 turns", "learnt", 2, 1},
    {RULES("'" BASH("echo again") "'"),
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'tools': ['bash'], 'max_turns': 3}}", OUTCOME_AGENT,
     "turns", NULL, 3, 2},
    {RULES("'" CALL("dance", "{}") "', '" SUBMIT("") "'"), TASK(""), OUTCOME_OK, "2 turns", "", 2, 1},
    {RULES("'" BASH("a command that is too long for this reply, and so is its end") "', '.'"),
     TASK(", 'sampling': {'max_tokens': 50}"), OUTCOME_OK, "2 turns", ".", 2, 0},
    {RULES("'no call, but cut off before the end of this sentence', '.'"), TASK(", 'sampling': {'max_tokens': 20}"),
     OUTCOME_OK, "2 turns", ".", 2, 0},
    {RULES("'" BASH("head -c 2G /dev/zero | tail") "'"), TASK(""), OUTCOME_AGENT, "memory", NULL, 1, 0},
    {RULES("'.'"), "{'task': 't', 'prompt': 'x', 'agent': {'tools': ['search']}}", OUTCOME_INFRA, "no web search", NULL,
     0, 0},
};

static void the_agent_ends_in_each_of_its_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(endings); i++) {
        const struct ending *ending = &endings[i];
        print_message("%s %s\n", outcome_wire(ending->outcome), ending->words);
        world_open_on(&world, loop, ending->script, NULL);
        struct attempt attempt = {.json = ending->task};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, ending->outcome, ending->words);
        assert_int_equal(count_turns(&attempt.record, "assistant"), ending->sampled);
        assert_int_equal(count_turns(&attempt.record, "user"), ending->told);
        if (ending->answer)
            assert_string_equal(attempt.run.answer, ending->answer);
        if (ending->sampled)
            assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

/* ---- tools: what is said and recorded ------------------------------------------------------ */

static void several_calls_of_a_turn_are_each_recorded_and_told_together(void **state)
{
    (void)state;
    world_open_on(&world, loop, RULES("'" BASH("cd /tmp; x=1") BASH("echo $PWD $x; false") "', '.'"), NULL);
    struct attempt attempt = {.json = TASK("")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "2 turns");
    const struct record_message *second = message_in_role(&attempt.record, "tool", 1);
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->tool, "bash: {\"command\": \"cd /tmp; x=1\"}");
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "(no output)");
    assert_string_equal(second->content, "/tmp 1\nexit status: 1");
    assert_int_equal(second->exit_status, 1);
    AUTO_FREE char *text = turn_text(&attempt.record, "user", 0);
    assert_string_equal(text, "\nuser\n<tool_response>\n(no output)\n</tool_response>\n"
                              "<tool_response>\n/tmp 1\nexit status: 1\n</tool_response>\n"
                              "assistant\n");
    assert_record_is_the_log(&attempt.record, &world);
    attempt_finish(&attempt);
    world_close(&world);
}

static void the_tools_stand_in_the_system_prompt_behind_the_tasks_own(void **state)
{
    (void)state;
    world_open_on(&world, loop, RULES("'.'"), NULL);
    struct attempt own = {.json = TASK("")};
    struct attempt given = {.json = "{'task': 't', 'agent': {'tools': ['think']}, 'messages': [{'role': 'system', "
                                    "'content': 'Be quick.'}, {'role': 'user', 'content': 'go'}]}"};
    attempt_run(&world, &own);
    attempt_run(&world, &given);
    assert_non_null(strstr(own.record.messages[0].content, "sandbox"));
    assert_non_null(strstr(own.record.messages[0].content, "{\"name\": \"bash\", \"description\""));
    assert_null(strstr(own.record.messages[0].content, "{\"name\": \"edit\""));
    assert_memory_equal(given.record.messages[0].content, "Be quick.\n\n# Tools\n\n", 20);
    assert_non_null(strstr(given.record.messages[0].content, "{\"name\": \"think\""));
    assert_int_equal(given.record.message_count, 3);
    assert_string_equal(given.record.messages[1].content, "go");
    attempt_finish(&own);
    attempt_finish(&given);
    world_close(&world);
}

/* ---- forms ------------------------------------------------------------------------------- */

#define IN(format) "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'form': '" format "'}}"
#define QWEN_LS                                                                                                        \
    "<tool_call>\\n<function=bash>\\n<parameter=command>\\necho $((6*7))\\n</parameter>\\n"                            \
    "</function>\\n</tool_call>"
#define OPENHANDS_LS "<function=bash>\\n<parameter=command>echo $((6*7))</parameter>\\n</function>"
#define LLAMA_LS "{\\\"name\\\": \\\"bash\\\", \\\"parameters\\\": {\\\"command\\\": \\\"echo $((6*7))\\\"}}"
#define MODEL(name, reply)                                                                                             \
    "{'context': 32768, 'model': '/models/" name "', 'rules': [{'replies': ['" reply "', 'It is 42.']}]}"

static const struct {
    const char *script, *task, *shown, *told;
} tool_formats[] = {
    {RULES("'" QWEN_LS "', '.'"), IN("qwen-coder"), "<name>bash</name>", "<tool_response>\n42\n"},
    {RULES("'" OPENHANDS_LS "', '.'"), IN("openhands"), "FUNCTION #1: bash", "RESULT of [bash]:\n42\n"},
    {RULES("'" LLAMA_LS "', '.'"), IN("llama"), "\"name\": \"bash\"", "Result of bash:\n42\n"},
    {MODEL("Qwen3-Coder-30B.gguf", QWEN_LS), IN("auto"), "<name>bash</name>", "<tool_response>\n42\n"},
    {MODEL("Llama-3.2-3B.gguf", LLAMA_LS), IN("auto"), "\"name\": \"bash\"", "Result of bash:\n42\n"},
    {MODEL("any.gguf", BASH("echo $((6*7))")), TASK(""), "<tools>\n{", "<tool_response>\n42\n"},
};

static void the_form_is_the_tasks_or_that_of_the_engines_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tool_formats); i++) {
        world_open_on(&world, loop, tool_formats[i].script, NULL);
        struct attempt attempt = {.json = tool_formats[i].task};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, OUTCOME_OK, "2 turns");
        AUTO_FREE char *told = turn_text(&attempt.record, "user", 0);
        assert_non_null(strstr(attempt.record.messages[0].content, tool_formats[i].shown));
        assert_non_null(strstr(told, tool_formats[i].told));
        assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "42\n");
        assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

/* Cut before its end: more of it might have followed. */
static void a_call_that_was_cut_off_is_not_made(void **state)
{
    (void)state;
    static const char cut[] = "<function=bash>\\n<parameter=command>echo hi</parameter>\\n";
    char script[512], task[512];
    snprintf(script, sizeof(script), RULES("'%s</function>', '.'"), cut);
    snprintf(task, sizeof(task),
             "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'form': 'openhands'}, 'sampling': "
             "{'max_tokens': %zu}}",
             strlen(cut) - 2);
    world_open_on(&world, loop, script, NULL);
    struct attempt attempt = {.json = task};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "2 turns");
    const struct record_message *told = &attempt.record.messages[attempt.record.message_count - 2];
    assert_non_null(strstr(told->content, "That reply was cut off"));
    assert_int_equal(attempt.record.trace_count, 2);
    attempt_finish(&attempt);
    world_close(&world);
}

static void a_refused_call_is_answered_with_the_nearest_tool_and_an_example(void **state)
{
    (void)state;
    world_open_on(&world, loop,
                  RULES("'" CALL("execute_bash", "{}") CALL("think", "{\\\"idea\\\": 7}") BASH("echo hi") "', '.'"),
                  NULL);
    struct attempt attempt = {.json = TASK("")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "2 turns");
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content,
                        "There is no tool \"execute_bash\"; bash is the nearest. The tools are: bash, think, "
                        "submit. A call of bash looks like this:\n<tool_call>\n{\"name\": \"bash\", "
                        "\"arguments\": {\"command\": \"...\"}}\n</tool_call>");
    assert_string_equal(message_in_role(&attempt.record, "tool", 1)->content,
                        "think: the argument thought is missing. A call of think looks like this:\n<tool_call>"
                        "\n{\"name\": \"think\", \"arguments\": {\"thought\": \"...\"}}\n</tool_call>");
    assert_string_equal(message_in_role(&attempt.record, "tool", 2)->content, "hi\n");
    attempt_finish(&attempt);
    world_close(&world);
}

static void time_used_up_by_a_call_is_the_agents(void **state)
{
    (void)state;
    world_open_on(&world, loop, RULES("'" BASH("sleep 1000") "'"), NULL);
    struct attempt attempt = {.json = TASK(", 'limits': {'command_s': 1000}"), .deadline_ms = 1500};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_AGENT, "time: limits.run_s is used up");
    attempt_finish(&attempt);
    world_close(&world);
}

/* ---- replay -------------------------------------------------------------------------------- */

#define SCRIPT(calls) "{'task': 't', 'agent': {'script': [" calls "]}}"

static void a_replay_makes_its_calls_and_records_them(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{}", NULL);
    struct attempt attempt = {.json = SCRIPT("{'tool': 'bash', 'arguments': {'command': 'cd /tmp; echo hi'}},"
                                             "{'tool': 'bash', 'arguments': {'command': 7}},"
                                             "{'tool': 'think', 'arguments': {'thought': 'hm'}},"
                                             "{'tool': 'bash', 'arguments': {'command': 'pwd; exit 3'}},"
                                             "{'tool': 'submit', 'arguments': {'answer': '42'}},"
                                             "{'tool': 'bash', 'arguments': {'command': 'touch never'}}")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "5 of 6 calls made");
    assert_string_equal(attempt.run.answer, "42");
    assert_string_equal(attempt.record.agent, "replay");
    assert_int_equal(attempt.record.trace_count, 0);
    assert_int_equal(attempt.record.message_count, 5);
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "hi\n");
    assert_string_equal(message_in_role(&attempt.record, "tool", 1)->content,
                        "bash: the argument command must be a string, not an integer.");
    assert_int_equal(message_in_role(&attempt.record, "tool", 1)->exit_status, 1);
    assert_int_equal(message_in_role(&attempt.record, "tool", 3)->exit_status, 3);
    json_t *log = world_log(&world);
    assert_int_equal(json_array_size(log), 0);
    json_decref(log);
    attempt_finish(&attempt);
    world_close(&world);
}

static void a_replay_says_where_results_differ_from_what_was_recorded(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{}", NULL);
    struct attempt attempt = {
        .json = SCRIPT("{'tool': 'bash', 'arguments': {'command': 'echo a; echo b'}, 'result': 'a\\nb\\n', "
                       "'status': 0},"
                       "{'tool': 'bash', 'arguments': {'command': 'echo a; echo c'}, 'result': 'a\\nb\\n'},"
                       "{'tool': 'bash', 'arguments': {'command': 'exit 3'}, 'status': 0},"
                       "{'tool': 'bash', 'arguments': {'command': 'date'}}")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "differs: 2 of 3 recorded results, the first of call 2; 4 of 4 calls made");
    assert_int_equal(attempt.record.message_count, 6);
    assert_string_equal(attempt.record.messages[2].content,
                        "Call 2 (bash) gave something else than was recorded: line 2 was \"b\" and is \"c\"");
    assert_string_equal(attempt.record.messages[4].content,
                        "Call 3 (bash) gave something else than was recorded: its status was 0 and is 3");
    attempt_finish(&attempt);
    world_close(&world);
}

/* As `sluice show --json` prints the messages of agents of both kinds. */
static void a_trajectorys_own_calls_are_replayed_and_compared(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{}", NULL);
    struct attempt attempt = {
        .json = "{'task': 't', 'agent': {'recorded': [{'role': 'user', 'content': 'go'}, {'role': "
                "'assistant', "
                "'content': 'I do.'}, {'role': 'tool', 'content': 'hi\\n', 'tool': 'bash: "
                "{\\'command\\': \\'echo "
                "hi\\'}', 'exit_status': 0}, {'role': 'tool', 'content': "
                "'<returncode>1</returncode>\\n<output>\\nhi\\n</output>', 'tool': 'bash: echo hi; "
                "false', 'exit_status': 1}, "
                "{'role': 'tool', 'content': "
                "'<returncode>0</returncode>\\n<output>\\nx\\n</output>', 'tool': "
                "'bash: echo y', 'exit_status': 0}]}}"};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "differs: 1 of 3 recorded results, the first of call 3; 3 of 3 calls made");
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "hi\n");
    assert_string_equal(message_in_role(&attempt.record, "tool", 1)->content, "hi\nexit status: 1");
    attempt_finish(&attempt);
    world_close(&world);
}

static void a_replay_that_breaks_a_limit_or_its_time_ends_as_an_agent_does(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{}", NULL);
    struct attempt greedy = {
        .json = SCRIPT("{'tool': 'bash', 'arguments': {'command': 'head -c 2G /dev/zero | tail'}}")};
    struct attempt slow = {.json = SCRIPT("{'tool': 'bash', 'arguments': {'command': 'sleep 1000'}}"),
                           .deadline_ms = 1000};
    attempt_run(&world, &greedy);
    assert_ended(&greedy, OUTCOME_AGENT, "memory: the sandbox used more than its limit");
    attempt_run(&world, &slow);
    assert_ended(&slow, OUTCOME_AGENT, "time: limits.run_s is used up");
    attempt_finish(&greedy);
    attempt_finish(&slow);
    world_close(&world);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_agent_ends_in_each_of_its_ways),
        TEST(several_calls_of_a_turn_are_each_recorded_and_told_together),
        TEST(the_tools_stand_in_the_system_prompt_behind_the_tasks_own),
        TEST(the_form_is_the_tasks_or_that_of_the_engines_model),
        TEST(a_call_that_was_cut_off_is_not_made),
        TEST(a_refused_call_is_answered_with_the_nearest_tool_and_an_example),
        TEST(time_used_up_by_a_call_is_the_agents),
        TEST(a_replay_makes_its_calls_and_records_them),
        TEST(a_replay_says_where_results_differ_from_what_was_recorded),
        TEST(a_trajectorys_own_calls_are_replayed_and_compared),
        TEST(a_replay_that_breaks_a_limit_or_its_time_ends_as_an_agent_does),
    };
    return cmocka_run_group_tests_name("agent_tools", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
