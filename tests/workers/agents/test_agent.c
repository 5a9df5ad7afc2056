/* Agents over a scripted engine and real sandboxes: how each may end. */
#include "tests/workers/agents/agent_world.h"

#include "common/digest/digest.h"
#include "schemas/tokenizer_sample.h"
#include "workers/agents/kinds/agents.h"

#define BASH(command) "```bash\\n" command "\\n```"

static struct world world;

static void open_world(const char *script) { world_open_on(&world, loop, script, NULL); }

/* ---- chat and none --------------------------------------------------------------------------- */

#define CHAT                                                                                                           \
    "{'task': 't', 'prompt': 'how much?', 'agent': {'kind': 'chat'}, 'sampling': {'max_tokens': "                      \
    "20}}"

static void chat_answers_once_and_records_what_was_sampled(void **state)
{
    (void)state;
    open_world("{'rules': [{'reply': 'caf\\u00e9 42'}]}");
    struct attempt attempt = {.json = CHAT};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "1 turn");
    assert_string_equal(attempt.run.answer, "caf\xc3\xa9 42");
    assert_int_equal(assert_record_is_the_log(&attempt.record, &world), 1);
    assert_int_equal(attempt.record.traces[0].turn_count, 2);
    assert_string_equal(attempt.record.agent, "chat");
    assert_string_equal(attempt.record.logprobs_mode, "raw");
    const struct record_trace *trace = &attempt.record.traces[0];
    assert_memory_equal(attempt.record.template_digest, "sha256:", 7);
    assert_string_equal(trace->template_digest, attempt.record.template_digest);
    char digest[80]; /* of a tokenizer whose ids are bytes */
    uint32_t ids[4096];
    size_t count = strlen(tokenizer_sample);
    assert_true(count < 4096);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint8_t)tokenizer_sample[i];
    assert_true(digest_of(slice_of(ids, count * sizeof(*ids)), digest));
    assert_string_equal(trace->tokenizer_digest, digest);
    const struct record_turn *turn = turn_in_role(&attempt.record, "assistant", 0);
    assert_string_equal(turn->finish, "stop");
    assert_string_equal(turn->engine, world.url);
    assert_int_equal(turn->prompt_tokens, turn->offset);
    assert_true(turn->prefill_seconds.is_known && turn->prefill_seconds.value == 0.0025);
    assert_true(turn->decode_seconds.is_known && turn->decode_seconds.value == 0.00125 * turn->length);
    attempt_finish(&attempt);
    world_close(&world);
}

static void an_answer_that_was_cut_is_the_agents_failure(void **state)
{
    (void)state;
    open_world("{'rules': [{'reply': 'more than twenty bytes of an answer'}]}");
    struct attempt attempt = {.json = CHAT};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_AGENT, "length");
    assert_int_equal(turn_in_role(&attempt.record, "assistant", 0)->length, 20);
    assert_string_equal(turn_in_role(&attempt.record, "assistant", 0)->finish, "length");
    attempt_finish(&attempt);
    world_close(&world);
}

static void none_samples_nothing(void **state)
{
    (void)state;
    open_world(NULL);
    struct attempt attempt = {.json = "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'none'}}"};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "");
    assert_int_equal(attempt.record.trace_count, 0);
    attempt_finish(&attempt);
    world_close(&world);
}

static void an_unknown_agent_is_not_found(void **state)
{
    (void)state;
    assert_null(agent_find("dance"));
    assert_null(agent_find(""));
}

/* ---- bash: ways to end ----------------------------------------------------------------------- */

#define TASK(more) "{'task': 't', 'prompt': 'make it', 'agent': {'kind': 'bash'}" more "}"

static const struct ending {
    const char *script, *task;
    enum outcome outcome;
    const char *words;
    size_t sampled, tools; /* turns; what was told to the model */
    const char *check;     /* a command that succeeds in the sandbox afterwards */
} endings[] = {
    {"{'rules': [{'replies': ['" BASH("echo hi > f; cd /tmp") "', 'Now:\\n" BASH(
         "pwd > /workspace/g") "', 'TASK_DONE']}]}",
     TASK(""), OUTCOME_OK, "3 turns", 3, 2, "test $(cat f) = hi && test $(cat g) = /tmp"},
    {"{'rules': [{'replies': ['" BASH("touch f") "', '" BASH("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT") "']}]}",
     TASK(""), OUTCOME_OK, "2 turns", 2, 1, "test -f f"},
    {"{'rules': [{'replies': ['" BASH("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; false") "', 'TASK_DONE']}]}",
     TASK(""), OUTCOME_OK, "2 turns", 2, 1, "true"},
    {"{'rules': [{'replies': ['" BASH("touch f") "', 'I think that is it.', 'TASK_DONE']}]}", TASK(""), OUTCOME_OK,
     "3 turns", 3, 2, "test -f f"},
    {"{'rules': [{'replies': ['" BASH("touch f") "\\nTASK_DONE']}]}", TASK(""), OUTCOME_OK, "1 turn", 1, 0,
     "test -f f"},
    {"{'rules': [{'replies': ['TASK_DONE']}]}", TASK(""), OUTCOME_OK, "1 turn", 1, 0, "true"},
    {"{'rules': [{'replies': ['Hello!']}]}", TASK(""), OUTCOME_AGENT, "format: 4 replies in a row", 4, 3, "true"},
    {"{'rules': [{'replies': ['Hello!']}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_format_errors': 0}}", OUTCOME_AGENT,
     "format: 1 reply in a row", 1, 0, "true"},
    {"{'rules': [{'replies': ['One.', 'Two.', 'Three.', '" BASH("touch f") "', '```bash', '```bash', "
                                                                           "'```bash', '```bash']}]}",
     TASK(""), OUTCOME_AGENT, "format", 8, 7, "test -f f"},
    {"{'rules': [{'replies': ['" BASH("touch f") "\\n" BASH("touch g") "', 'sorry', '" BASH(
         "touch h") "', 'TASK_DONE']}]}",
     TASK(""), OUTCOME_OK, "4 turns", 4, 3, "test ! -e f && test ! -e g && test -e h"},
    {"{'rules': [{'replies': ['" BASH("echo $((++n)) > f") "']}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_turns': 3}}", OUTCOME_AGENT, "turns", 3, 2,
     "test $(cat f) = 3"},
    {"{'rules': [{'replies': ['" BASH("sleep 60") "', 'TASK_DONE']}]}", TASK(", 'limits': {'command_s': 1}"),
     OUTCOME_OK, "2 turns", 2, 1, "true"},
    {"{'rules': [{'call': 3, 'fault': '400'}, {'reply': '" BASH("touch f") "'}]}", TASK(""), OUTCOME_TASK,
     "no such thing", 2, 2, "test -f f"},
    {"{'rules': [{'call': 2, 'fault': 'long'}, {'reply': '" BASH("touch f") "'}]}", TASK(""), OUTCOME_AGENT, "context",
     1, 1, "test -f f"},
    {"{'rules': [{'call': 1, 'fault': 'long'}]}", TASK(""), OUTCOME_TASK, "context", 0, 0, "true"},
    {"{'rules': [{'reply': '" BASH("printf %900s") "'}]}", TASK(", 'limits': {'context_tokens': 1300}"), OUTCOME_AGENT,
     "context", 1, 1, "true"},
    {"{'template': 'history', 'rules': [{'reply': '" BASH("touch f") "'}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_turns': 3}}", OUTCOME_AGENT, "turns", 3, 0,
     "test -f f"},
    {"{'template': 'history', 'rules': [{'reply': '" BASH("touch f") "'}]}",
     "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash', 'max_traces': 1}}", OUTCOME_AGENT,
     "agent.max_traces is 1, and another would start: template:", 1, 0, "test -f f"},
};

static int status_in(struct attempt *attempt, const char *command)
{
    char *text;
    int status = run_text(attempt->run.sandbox, command, &text);
    free(text);
    return status;
}

static struct attempt *checked_attempt;
static const char *checked_command;
static int checked_status;

static void check_fiber(void) { checked_status = status_in(checked_attempt, checked_command); }

static void bash_ends_in_each_of_its_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        const struct ending *ending = &endings[i];
        print_message("%s %s\n", outcome_wire(ending->outcome), ending->words);
        open_world(ending->script);
        struct attempt attempt = {.json = ending->task, .keep_sandbox = true};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, ending->outcome, ending->words);
        assert_int_equal(count_turns(&attempt.record, "assistant"), ending->sampled);
        assert_int_equal(count_turns(&attempt.record, "user"), ending->tools);
        if (ending->sampled)
            assert_record_is_the_log(&attempt.record, &world);
        checked_attempt = &attempt;
        checked_command = ending->check;
        in_fiber(check_fiber);
        assert_int_equal(checked_status, 0);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

/* ---- time, cancelling, engines that fail ----------------------------------------------------- */

static void time_used_up_by_a_command_is_the_agents(void **state)
{
    (void)state;
    open_world("{'rules': [{'reply': '" BASH("sleep 60") "'}]}");
    struct attempt attempt = {.json = TASK(""), .deadline_ms = 1500};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_AGENT, "time");
    attempt_finish(&attempt);
    world_close(&world);
}

static void time_used_up_by_a_silent_engine_is_not(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "{'rules': [{'fault': 'hang'}]}",
        "{'rules': [{'path': '/props', 'fault': 'hang'}]}",
        "{'rules': [{'call': 2, 'fault': 'hang'}, {'reply': '" BASH("true") "'}]}",
    };
    for (size_t i = 0; i < 3; i++) {
        open_world(scripts[i]);
        struct attempt attempt = {.json = TASK(""), .deadline_ms = 3000};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, OUTCOME_INFRA, "gave no answer");
        assert_int_equal(attempt.run.fault, FAULT_ENGINE);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

static void an_engine_that_keeps_failing_is_infra_and_the_record_stays_whole(void **state)
{
    (void)state;
    open_world("{'rules': [{'if': '<returncode>', 'fault': 'one_entry_more'}, {'reply': '" BASH("true") "'}]}");
    struct attempt attempt = {.json = TASK("")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_INFRA, "log-probabilities");
    assert_int_equal(attempt.run.fault, FAULT_ENGINE);
    assert_int_equal(count_turns(&attempt.record, "assistant"), 1);
    attempt_finish(&attempt);
    world_close(&world);
}

static struct fiber *attempt_handle;

static void cancellable_fiber(void *arg)
{
    attempt_handle = fiber_current();
    attempt_fiber(arg);
}

/* Once the command runs. */
static void cancel_fiber(void *arg)
{
    struct attempt *attempt = arg;
    while (attempt->record.trace_count == 0 || !turn_in_role(&attempt->record, "assistant", 0))
        assert_int_equal(await_sleep(5), 0);
    fiber_cancel(attempt_handle);
}

static void a_cancelled_agent_stops_in_the_middle_of_a_command(void **state)
{
    (void)state;
    open_world("{'rules': [{'reply': '" BASH("sleep 60") "'}]}");
    struct attempt attempt = {0};
    attempt.task = parse_task("{\"task\": \"t\", \"prompt\": \"x\", \"agent\": {\"kind\": \"bash\"}}");
    record_init(&attempt.record);
    fiber_world = &world;
    int64_t start_ms = clock_ms();
    assert_non_null(fiber_start(loop, cancellable_fiber, fiber_ended, &attempt));
    assert_non_null(fiber_start(loop, cancel_fiber, fiber_ended, &attempt));
    world.running = 2;
    loop_run(loop);
    assert_ended(&attempt, OUTCOME_CANCELLED, "cancelled");
    assert_true(clock_ms() - start_ms < 20000);
    attempt_finish(&attempt);
    world_close(&world);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_agent_is_not_found),
        cmocka_unit_test_setup_teardown(chat_answers_once_and_records_what_was_sampled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_that_was_cut_is_the_agents_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_samples_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bash_ends_in_each_of_its_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_used_up_by_a_command_is_the_agents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_used_up_by_a_silent_engine_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_engine_that_keeps_failing_is_infra_and_the_record_stays_whole, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cancelled_agent_stops_in_the_middle_of_a_command, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
