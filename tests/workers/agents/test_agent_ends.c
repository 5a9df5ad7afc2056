/* What ends a rollout whose agent did not: circles of calls, tokens, the context; for both agents that
 * take turns. */
#include "tests/workers/agents/agent_world.h"

#define BASH(command) "```bash\\n" command "\\n```"
#define TASK(more) "{'task': 't', 'prompt': 'make it', 'agent': {'kind': 'bash'}" more "}"
#define CALL_BASH(command)                                                                                             \
    "<tool_call>{\\\"name\\\": \\\"bash\\\", \\\"arguments\\\": {\\\"command\\\": \\\"" command "\\\"}}</tool_call>"
#define LONG(replies) "{'context': 32768, 'rules': [{'replies': [" replies "]}]}"
#define TOOLS(more)                                                                                                    \
    "{'task': 't', 'prompt': 'make it', 'agent': {'kind': 'tools', 'tools': ['bash', 'think', "                        \
    "'submit']}" more "}"

static struct world world;

static const struct ending {
    const char *script, *task;
    enum outcome outcome;
    const char *words;
    size_t sampled, told; /* turns */
} endings[] = {
    {"{'rules': [{'reply': '" BASH("echo a >> f") "'}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_repeats': 2}}", OUTCOME_AGENT,
     "loop: a round of 1 call gave the same 3 times in a row", 3, 2},
    {"{'rules': [{'replies': ['" BASH("echo a >> f") "', '" BASH("pwd") "', '" BASH("echo a >> f") "', '" BASH(
         "pwd") "', 'TASK_DONE']}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_repeats': 1}}", OUTCOME_AGENT,
     "loop: a round of 2 calls", 4, 3},
    {"{'rules': [{'replies': ['" BASH("cat f; date +%N >f") "', '" BASH("cat f; date +%N >f") "', '" BASH(
         "cat f; date +%N >f") "', 'TASK_DONE']}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_repeats': 1}}", OUTCOME_OK, "4 turns", 4, 3},
    {"{'rules': [{'replies': ['" BASH("true") "', '" BASH("true") "', '" BASH("true") "', 'TASK_DONE']}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_repeats': 1, 'on_repeat': "
     "'warn'}}",
     OUTCOME_OK, "4 turns", 4, 3},
    /* 17 tokens of a block and its end, twice; the third turn is cut off */
    {"{'rules': [{'reply': '" BASH("echo") "'}]}", TASK(", 'limits': {'sampled_tokens': 50}"), OUTCOME_AGENT,
     "tokens: all 50 of limits.sampled_tokens are used up", 3, 2},
    {LONG("'" CALL_BASH("echo again") "'"),
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'max_repeats': 2}}", OUTCOME_AGENT,
     "loop: a round of 1 call gave the same 3 times", 3, 2},
    {LONG("'" CALL_BASH("echo again") CALL_BASH("echo again") CALL_BASH("touch never") "'"),
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'max_repeats': 1}}", OUTCOME_AGENT, "loop", 1, 0},
    {LONG("'" CALL_BASH("echo again") CALL_BASH("echo again") "', '.'"),
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'max_repeats': 1, 'on_repeat': "
     "'warn'}}",
     OUTCOME_OK, "2 turns", 2, 1},
    {LONG("'" CALL_BASH("echo a") "'"), TOOLS(", 'limits': {'sampled_tokens': 150}"), OUTCOME_AGENT,
     "tokens: all 150 of", 2, 1},
    {"{'context': 9000, 'rules': [{'replies': ['" CALL_BASH("seq 3000") "']}]}", TOOLS(""), OUTCOME_AGENT,
     "context: ", 1, 1},
};

static void each_limit_ends_a_rollout_by_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        const struct ending *ending = &endings[i];
        print_message("%s %s\n", outcome_wire(ending->outcome), ending->words);
        world_open_on(&world, loop, ending->script, NULL);
        struct attempt attempt = {.json = ending->task};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, ending->outcome, ending->words);
        assert_int_equal(count_turns(&attempt.record, "assistant"), ending->sampled);
        assert_int_equal(count_turns(&attempt.record, "user"), ending->told);
        assert_record_is_the_log(&attempt.record, &world);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

/* The last turn is cut off at what is left of all. */
static void sampled_tokens_are_counted_over_all_turns(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{'rules': [{'reply': '" BASH("echo") "'}]}", NULL);
    struct attempt attempt = {.json = TASK(", 'limits': {'sampled_tokens': 50}")};
    attempt_run(&world, &attempt);
    size_t sampled = 0;
    for (size_t i = 0; i < attempt.record.traces[0].token_count; i++)
        sampled += attempt.record.traces[0].mask[i];
    assert_int_equal(sampled, 50);
    assert_string_equal(turn_in_role(&attempt.record, "assistant", 1)->finish, "stop");
    assert_string_equal(turn_in_role(&attempt.record, "assistant", 2)->finish, "length");
    attempt_finish(&attempt);
    world_close(&world);
}

static void a_round_of_calls_is_warned_of_once_and_then_counted_anew(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{'rules': [{'reply': '" BASH("true") "'}]}", NULL);
    struct attempt attempt = {.json = "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', "
                                      "'max_turns': 6, 'max_repeats': 1, "
                                      "'on_repeat': 'warn'}}"};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_AGENT, "turns");
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(
            strstr(message_in_role(&attempt.record, "tool", i)->content, "You make the same calls") != NULL, i % 2);
    attempt_finish(&attempt);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_limit_ends_a_rollout_by_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sampled_tokens_are_counted_over_all_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_round_of_calls_is_warned_of_once_and_then_counted_anew, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("agent_ends", tests, NULL, NULL);
}
