/* Agents of a handler over a scripted engine: the same ids, masks and log-probabilities as a built-in agent's, and each
 * of their ends. */
#include "tests/workers/handlers/handler_run_world.h"

#include "workers/handlers/roles/agent.h"

#define CALL(name, arguments)                                                                                          \
    "<tool_call>\\n{\\\"name\\\": \\\"" name "\\\", \\\"arguments\\\": " arguments "}\\n</tool_call>"
#define BASH(command) CALL("bash", "{\\\"command\\\": \\\"" command "\\\"}")
#define RULES(replies) "{'context': 32768, 'rules': [{'replies': [" replies "]}]}"
#define AGENT(kind, more) "{'task': 't', 'prompt': 'go', 'agent': {'kind': '" kind "'" more "}}"
#define ASKS "'messages': [{'role': 'system', 'content': 'Be quick.'}, {'role': 'user', 'content': 'go'}]"

static void assert_same_record(const struct record *a, const struct record *b)
{
    assert_int_equal(a->trace_count, b->trace_count);
    for (size_t t = 0; t < a->trace_count; t++) {
        const struct record_trace *x = &a->traces[t], *y = &b->traces[t];
        assert_int_equal(x->token_count, y->token_count);
        assert_memory_equal(x->token_ids, y->token_ids, x->token_count * sizeof(*x->token_ids));
        assert_memory_equal(x->mask, y->mask, x->token_count);
        assert_memory_equal(x->logprobs, y->logprobs, x->token_count * sizeof(*x->logprobs));
        assert_int_equal(x->turn_count, y->turn_count);
        for (size_t i = 0; i < x->turn_count; i++)
            assert_string_equal(x->turns[i].role, y->turns[i].role);
    }
    assert_int_equal(a->message_count, b->message_count);
    for (size_t i = 0; i < a->message_count; i++) {
        assert_string_equal(a->messages[i].role, b->messages[i].role);
        assert_string_equal(a->messages[i].content, b->messages[i].content);
    }
}

/* Two runs of one script, each by an engine of its own. */
static void expect_same(const char *script, const struct agent *agent, const char *built_in, const char *handlers)
{
    struct attempt one = {.json = built_in}, two = {.json = handlers};
    open_run_world(script);
    run_with_handlers(agent, &one);
    renew_engine(script);
    run_with_handlers(&agent_handler, &two);
    assert_ended(&one, OUTCOME_OK, "ended after");
    assert_ended(&two, OUTCOME_OK, "ended after");
    assert_string_equal(one.run.answer, two.run.answer);
    assert_same_record(&one.record, &two.record);
    assert_record_is_the_log(&two.record, &world);
    attempt_finish(&one);
    attempt_finish(&two);
}

FIBER_TEST(one_that_asks_once_gives_the_ids_of_the_agent_chat)
{
    expect_same(RULES("'It is 4.'"), &agent_chat, "{'task': 't', 'prompt': '2+2?', 'agent': {'kind': 'chat'}}",
                "{'task': 't', 'prompt': '2+2?', 'agent': {'kind': 'asks_once'}}");
    assert_false(attempt_opened);
}

FIBER_TEST(one_that_calls_tools_gives_the_ids_of_the_agent_tools)
{
    const char *const script = RULES("'" BASH("echo hi; false") BASH("echo two") "', '" BASH("pwd") "', 'done'");
    expect_same(script, &agent_tools, "{'task': 't', " ASKS ", 'agent': {'kind': 'tools', 'tools': ['bash']}}",
                "{'task': 't', " ASKS ", 'agent': {'kind': 'calls_tools', 'tools': ['bash']}}");
    assert_true(attempt_opened);
}

static const struct ending {
    const char *task;
    enum outcome outcome;
    enum fault fault;
    const char *words, *answer;
    size_t sampled;
} endings[] = {
    {AGENT("asks_once", ""), OUTCOME_OK, FAULT_NONE, "ended after 1 turns", "hm", 1},
    {AGENT("never_ends", ", 'max_turns': 3"), OUTCOME_AGENT, FAULT_NONE, "turns: all 3 are used up", "hm", 3},
    {"{'task': 't', 'prompt': 'x', 'agent': {'kind': 'never_ends'}, 'limits': {'sampled_tokens': 7}}", OUTCOME_AGENT,
     FAULT_NONE, "tokens: all 7 of", NULL, 3},
    {"{'task': 't', 'prompt': 'x', 'agent': {'kind': 'never_ends'}, 'limits': {'context_tokens': 120}}", OUTCOME_AGENT,
     FAULT_NONE, "context: ", NULL, 0},
    {AGENT("forks", ""), OUTCOME_OK, FAULT_NONE, "its own words", "forked", 2},
    {AGENT("forks", ", 'max_traces': 1"), OUTCOME_AGENT, FAULT_NONE, "context: agent.max_traces is 1", "hm", 1},
    {AGENT("asks_wrongly", ", 'tools': ['think']"), OUTCOME_OK, FAULT_NONE, "0 granted", "0 granted", 1},
    {AGENT("no_model", ", 'engine': 'none'"), OUTCOME_OK, FAULT_NONE, "ended after 0 turns", "refused", 0},
    {AGENT("ends_oddly", ""), OUTCOME_TASK, FAULT_NONE, "which is not one of ok, agent and task", NULL, 0},
    {AGENT("gives_up", ""), OUTCOME_TASK, FAULT_NONE, "the task makes no sense", NULL, 0},
    {AGENT("agent_failing", ""), OUTCOME_TASK, FAULT_NONE, "the agent is broken: KeyError: 'gold': in line 7", NULL, 0},
    {AGENT("agent_dying", ""), OUTCOME_INFRA, FAULT_HANDLER, "the handler mine: it ended with exit status 3", NULL, 0},
    {AGENT("unheard_of", ""), OUTCOME_INFRA, FAULT_HANDLER, "no handler of this worker offers the agent unheard_of",
     NULL, 0},
    {"{'task': 't', 'prompt': 'x', 'agent': {'kind': 'agent_silent'}, 'limits': {'run_s': 1}}", OUTCOME_AGENT,
     FAULT_NONE, "time: limits.run_s is used up", NULL, 0},
    {AGENT("calls_tools", ", 'tools': ['unheard_of']"), OUTCOME_INFRA, FAULT_HANDLER,
     "no handler of this worker offers the tool unheard_of", NULL, 0},
};

FIBER_TEST(it_ends_in_each_of_its_ways)
{
    open_run_world(RULES("'hm'"));
    for (size_t i = 0; i < COUNT(endings); i++) {
        const struct ending *ending = &endings[i];
        struct attempt attempt = {.json = ending->task};
        print_message("%s\n", ending->words);
        wait_for_offers();
        renew_engine(RULES("'hm'"));
        run_with_handlers(&agent_handler, &attempt);
        assert_ended(&attempt, ending->outcome, ending->words);
        assert_int_equal(attempt.run.fault, ending->fault);
        if (ending->answer)
            assert_string_equal(attempt.run.answer, ending->answer);
        if (ending->sampled)
            assert_int_equal(count_turns(&attempt.record, "assistant"), ending->sampled);
        if (ending->sampled)
            assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
    }
}

FIBER_TEST(another_conversation_is_a_new_trace_with_its_reason)
{
    struct attempt attempt = {.json = AGENT("forks", "")};
    open_run_world(RULES("'hm'"));
    run_with_handlers(&agent_handler, &attempt);
    assert_int_equal(attempt.record.trace_count, 2);
    assert_string_equal(attempt.record.traces[1].reason, "compaction");
    assert_string_equal(attempt.record.agent, "forks@1.2");
    attempt_finish(&attempt);
}

FIBER_TEST(notes_stand_in_the_record_and_the_sandbox_is_opened_when_it_is_used)
{
    struct attempt noted = {.json = AGENT("no_model", ", 'engine': 'none'")};
    struct attempt ran = {.json = AGENT("runs_command", ", 'engine': 'none'")};
    open_run_world(RULES("'hm'"));
    run_with_handlers(&agent_handler, &noted);
    assert_string_equal(message_in_role(&noted.record, "note", 0)->content, "a plan");
    assert_false(attempt_opened);
    run_with_handlers(&agent_handler, &ran);
    assert_true(attempt_opened);
    assert_non_null(strstr(ran.run.answer, "cat: given: No such file"));
    attempt_finish(&noted);
    attempt_finish(&ran);
}

FIBER_TEST(a_run_stage_without_a_sandbox_and_with_one_opened_later_leaves_its_layer)
{
    const char *json = "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"runs_command\",\"engine\":\"none\"},"
                       "\"files\":{\"given\":\"from init\"}}";
    open_run_world(RULES("'hm'"));
    struct job init = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    expect(&init, OUTCOME_OK, "");
    struct job run = make_job(json);
    run.start.task = slice_from_str(json);
    run.start.group = slice_from_str("g");
    give_layer(&run.start.init_layer_digest, &run.start.init_layer, &init.result.layer);
    job_begin(&run, STAGE_RUN);
    kind_sandbox.run(&run);
    fiber_pop_deadline();
    expect(&run, OUTCOME_OK, "ended after 0 turns");
    assert_non_null(strstr(run.result.answer, "from init"));
    assert_true(run.result.layer.digest[0] != '\0');
    end_job(&init);
    end_job(&run);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        HANDLER_RUN_TEST(one_that_asks_once_gives_the_ids_of_the_agent_chat),
        HANDLER_RUN_TEST(one_that_calls_tools_gives_the_ids_of_the_agent_tools),
        HANDLER_RUN_TEST(it_ends_in_each_of_its_ways),
        HANDLER_RUN_TEST(another_conversation_is_a_new_trace_with_its_reason),
        HANDLER_RUN_TEST(notes_stand_in_the_record_and_the_sandbox_is_opened_when_it_is_used),
        HANDLER_RUN_TEST(a_run_stage_without_a_sandbox_and_with_one_opened_later_leaves_its_layer),
    };
    return cmocka_run_group_tests_name("handler agent", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
