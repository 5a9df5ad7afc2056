/* Tools of a handler beside built-in ones, called by the built-in agent `tools` over a scripted engine. */
#include "tests/workers/handlers/handler_run_world.h"

#define CALL(name, arguments)                                                                                          \
    "<tool_call>\\n{\\\"name\\\": \\\"" name "\\\", \\\"arguments\\\": " arguments "}\\n</tool_call>"
#define LOOK(name) CALL(name, "{\\\"word\\\": \\\"two\\\"}")
#define RULES(replies) "{'context': 32768, 'rules': [{'replies': [" replies "]}]}"
#define TASK(name, more)                                                                                               \
    "{'task': 't', 'prompt': 'go', 'agent': {'kind': 'tools', 'tools': ['" name "', 'think']}" more "}"

static const struct called {
    const char *call, *task, *told;
    enum outcome outcome;
    const char *words, *answer;
} calls[] = {
    {LOOK("look_up"), TASK("look_up", ""), "two: 2", OUTCOME_OK, "2 turns", "done"},
    {LOOK("look_up_badly"), TASK("look_up_badly", ""), "the dictionary is closed", OUTCOME_OK, "2 turns", "done"},
    {LOOK("tool_failing"), TASK("tool_failing", ""), "tool_failing went wrong: KeyError: 'gold'", OUTCOME_OK, "2 turns",
     "done"},
    {LOOK("count_files"), TASK("count_files", ""), "{\"output\":\"0\\n\"", OUTCOME_OK, "2 turns", "done"},
    {LOOK("hand_in"), TASK("hand_in", ""), "taken", OUTCOME_OK, "1 turn", "handed in"},
    {LOOK("tool_silent"), TASK("tool_silent", ", 'limits': {'command_s': 1}"), "did not answer within 1 s", OUTCOME_OK,
     "2 turns", "done"},
    {CALL("look_up", "{}"), TASK("look_up", ""), "look_up: the argument word is missing.", OUTCOME_OK, "2 turns",
     "done"},
    {CALL("look_up", "{\\\"word\\\": 2}"), TASK("look_up", ""),
     "look_up: the argument word must be a string, not an integer.", OUTCOME_OK, "2 turns", "done"},
    {LOOK("tool_dying"), TASK("tool_dying", ""), NULL, OUTCOME_INFRA, "the handler mine: it ended with exit status 3",
     NULL},
    {LOOK("unheard_of"), TASK("unheard_of", ""), NULL, OUTCOME_INFRA,
     "no handler of this worker offers the tool unheard_of", NULL},
};

FIBER_TEST(a_handlers_tool_is_called_and_its_end_told_to_the_model)
{
    for (size_t i = 0; i < COUNT(calls); i++) {
        const struct called *called = &calls[i];
        char script[2048];
        snprintf(script, sizeof(script), RULES("'%s', 'done'"), called->call);
        print_message("%s\n", called->call);
        open_run_world(script);
        struct attempt attempt = {.json = called->task};
        run_with_handlers(&agent_tools, &attempt);
        assert_ended(&attempt, called->outcome, called->words);
        assert_int_equal(attempt.run.fault, called->outcome == OUTCOME_INFRA ? FAULT_HANDLER : FAULT_NONE);
        if (called->told && !strstr(message_in_role(&attempt.record, "tool", 0)->content, called->told))
            fail_msg("told %s, not %s", message_in_role(&attempt.record, "tool", 0)->content, called->told);
        if (called->answer)
            assert_string_equal(attempt.run.answer, called->answer);
        if (called->outcome == OUTCOME_OK)
            assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
        world_close(&world);
        handlers_destroy(&context.handlers);
    }
    open_run_world(RULES("'.'"));
}

FIBER_TEST(every_form_describes_it_to_the_model_by_its_schema)
{
    static const char *const forms[][2] = {{"hermes", "\"name\": \"look_up\""},
                                           {"llama", "The word."},
                                           {"qwen-coder", "<name>word</name>"},
                                           {"openhands", "word (string, required): The word."}};
    open_run_world(RULES("'done'"));
    for (size_t i = 0; i < COUNT(forms); i++) {
        char task[512];
        snprintf(task, sizeof(task),
                 "{'task': 't', 'prompt': 'go', 'agent': {'kind': 'tools', 'form': '%s', 'tools': ['look_up']}}",
                 forms[i][0]);
        struct attempt attempt = {.json = task};
        run_with_handlers(&agent_tools, &attempt);
        assert_ended(&attempt, OUTCOME_OK, "1 turn");
        if (!strstr(attempt.record.messages[0].content, forms[i][1]))
            fail_msg("%s: %s", forms[i][0], attempt.record.messages[0].content);
        attempt_finish(&attempt);
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        HANDLER_RUN_TEST(a_handlers_tool_is_called_and_its_end_told_to_the_model),
        HANDLER_RUN_TEST(every_form_describes_it_to_the_model_by_its_schema),
    };
    return cmocka_run_group_tests_name("handler tool", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
