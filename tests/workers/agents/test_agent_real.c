/*
 * Agents over a real llama.cpp server and a real model, through a recording proxy: what the
 * record says was sampled is what the server said, id for id, with its own log-probability.
 * Needs SLUICE_LLAMA_SERVER and SLUICE_MODEL (bash tests/run.sh sets them); says so if not.
 */
#include "tests/workers/agents/agent_world.h"
#include "tests/workers/engines/real_engine.h"

static struct world world;
static struct real_engine server;

/* ---- the server -------------------------------------------------------------------------- */

static int start_server(void **state)
{
    (void)state;
    if (real_engine_is_there())
        real_engine_start(&server, NULL);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    real_engine_stop(&server);
    return 0;
}

/* A proxy before the server, which is up then. */
static void open_world(void)
{
    real_engine_or_skip();
    world_open_on(&world, loop, NULL, server.url);
    world_run(&world, real_engine_await, &server, 0, 1);
}

/* ---- tests ------------------------------------------------------------------------------- */

static size_t sampled_tokens(const struct record *record)
{
    size_t count = 0;
    for (size_t i = 0; i < record->traces[0].token_count; i++)
        count += record->traces[0].mask[i];
    return count;
}

static size_t sampled_turns(const struct record *record)
{
    size_t count = 0;
    while (turn_in_role(record, "assistant", count))
        count++;
    return count;
}

static void chat_records_what_the_server_sampled(void **state)
{
    (void)state;
    open_world();
    struct attempt attempt = {.json = "{'task': 't', 'prompt': 'Name three colours.', 'agent': {'kind': 'chat'}, "
                                      "'sampling': {'temperature': 1.0, 'max_tokens': 100, 'seed': 11}}"};
    attempt_run(&world, &attempt);
    assert_true(attempt.outcome == OUTCOME_OK || attempt.outcome == OUTCOME_AGENT);
    assert_record_is_the_log(&attempt.record, &world);
    print_message("%zu tokens sampled\n", sampled_tokens(&attempt.record));
    attempt_finish(&attempt);
    world_close(&world);
}

#define SHOWN                                                                                                          \
    "{'role': 'user', 'content': 'Write hi into a.txt'},"                                                              \
    "{'role': 'assistant', 'content': '```bash\\necho hi > a.txt\\n```'},"                                             \
    "{'role': 'user', 'content': '<returncode>0</returncode>\\n<output>\\n</output>'},"                                \
    "{'role': 'assistant', 'content': '```bash\\ncat a.txt\\n```'},"                                                   \
    "{'role': 'user', 'content': '<returncode>0</returncode>\\n<output>\\nhi\\n</output>'},"                           \
    "{'role': 'assistant', 'content': '```bash\\nls\\n```'},"                                                          \
    "{'role': 'user', 'content': '<returncode>0</returncode>\\n<output>\\na.txt\\n</output>'},"

static void bash_turns_extend_one_another_id_for_id(void **state)
{
    (void)state;
    open_world();
    size_t most = 0;
    for (int seed = 1; seed <= 4; seed++) {
        char json[2048];
        snprintf(json, sizeof(json),
                 "{'task': 't', 'agent': {'kind': 'bash', 'max_turns': 6}, 'messages': [" SHOWN
                 "{'role': 'user', 'content': 'Write hello into b.txt'}], "
                 "'limits': {'command_s': 2}, 'sampling': {'temperature': 0.7, 'max_tokens': 60, "
                 "'seed': %d}}",
                 seed);
        world_close(&world); /* a new proxy and log for each rollout */
        open_world();
        struct attempt attempt = {.json = json};
        attempt_run(&world, &attempt);
        assert_true(attempt.outcome == OUTCOME_OK || attempt.outcome == OUTCOME_AGENT);
        assert_record_is_the_log(&attempt.record, &world);
        size_t turns = sampled_turns(&attempt.record);
        print_message("seed %d: %s, %zu turns, %zu tokens sampled: %s\n", seed, outcome_wire(attempt.outcome), turns,
                      sampled_tokens(&attempt.record), attempt.run.detail);
        most = turns > most ? turns : most;
        attempt_finish(&attempt);
    }
    assert_true(most >= 3); /* or nothing was shown about turns */
    world_close(&world);
}

#define CALLED(command)                                                                                                \
    "{'role': 'assistant', 'content': '<tool_call>\\n{\\\"name\\\": \\\"bash\\\", "                                    \
    "\\\"arguments\\\": "                                                                                              \
    "{\\\"command\\\": \\\"" command "\\\"}}\\n</tool_call>'},"
#define TOLD(text) "{'role': 'user', 'content': '" text "'},"
#define SHOWN_CALLS                                                                                                    \
    "{'role': 'user', 'content': 'Write hi into a.txt'}," CALLED("echo hi > a.txt") TOLD("(no output)")                \
        CALLED("cat a.txt") TOLD("hi") CALLED("ls") TOLD("a.txt") CALLED("wc a.txt") TOLD("1 1 3 a.txt")               \
            CALLED("echo hi > c.txt") TOLD("(no output)") CALLED("cat c.txt") TOLD("hi")

static size_t calls_made(const struct record *record)
{
    size_t count = 0;
    for (size_t i = 0; i < record->message_count; i++)
        count += strcmp(record->messages[i].role, "tool") == 0;
    return count;
}

/* Whether a model this small does anything useful with a tool is not the question. */
static void turns_of_calls_extend_one_another_id_for_id(void **state)
{
    (void)state;
    open_world();
    size_t most = 0, calls = 0;
    for (int seed = 1; seed <= 4; seed++) {
        char json[4096];
        snprintf(json, sizeof(json),
                 "{'task': 't', 'agent': {'kind': 'tools', 'tools': ['bash'], 'max_turns': 5}, "
                 "'messages': [" SHOWN_CALLS "{'role': 'user', 'content': 'Write hello into b.txt'}], "
                 "'limits': {'command_s': 2}, 'sampling': {'temperature': 0.3, 'max_tokens': 60, "
                 "'seed': %d}}",
                 seed);
        world_close(&world); /* a new proxy and log for each rollout */
        open_world();
        struct attempt attempt = {.json = json};
        attempt_run(&world, &attempt);
        assert_true(attempt.outcome == OUTCOME_OK || attempt.outcome == OUTCOME_AGENT);
        assert_record_is_the_log(&attempt.record, &world);
        size_t turns = sampled_turns(&attempt.record);
        calls += calls_made(&attempt.record);
        print_message("seed %d: %s, %zu turns, %zu calls in all, %zu tokens sampled: %s\n", seed,
                      outcome_wire(attempt.outcome), turns, calls, sampled_tokens(&attempt.record), attempt.run.detail);
        most = turns > most ? turns : most;
        attempt_finish(&attempt);
    }
    assert_true(most >= 2 && calls >= 3); /* or nothing was shown about turns after calls */
    world_close(&world);
}

/* Emoji are several tokens each, and the server reports no log-probability inside of them. */
static void tokens_inside_characters_have_logprobs_too(void **state)
{
    (void)state;
    open_world();
    struct attempt attempt = {.json = "{'task': 't', 'agent': {'kind': 'chat'}, 'messages': ["
                                      "{'role': 'user', 'content': 'Repeat: \\ud83d\\ude00 \\ud83d\\ude01'},"
                                      "{'role': 'assistant', 'content': '\\ud83d\\ude00 \\ud83d\\ude01'},"
                                      "{'role': 'user', 'content': 'Repeat: \\ud83d\\ude02 \\ud83d\\ude03'},"
                                      "{'role': 'assistant', 'content': '\\ud83d\\ude02 \\ud83d\\ude03'},"
                                      "{'role': 'user', 'content': 'Repeat: \\ud83d\\ude04 \\ud83d\\ude05'}], "
                                      "'sampling': {'temperature': 0.0, 'max_tokens': 24}}"};
    attempt_run(&world, &attempt);
    size_t missing = assert_record_is_the_log(&attempt.record, &world);
    print_message("%zu of %zu tokens had to be asked for: %s\n", missing, sampled_tokens(&attempt.record),
                  attempt.run.answer);
    assert_true(missing > 0);
    attempt_finish(&attempt);
    world_close(&world);
}

/* What was said before the last reply, as the messages a server would be sent. */
struct retelling {
    struct task_message messages[16];
    size_t count;
    struct tokens ids;
    int code;
};

static void retell(void *arg)
{
    struct retelling *retelling = arg;
    struct fail fail = {0};
    retelling->code = engine_render(world_engine(fiber_world), retelling->messages, retelling->count, retelling->count,
                                    &retelling->ids, &fail);
}

static void retelling_add(struct retelling *retelling, const struct record *record)
{
    size_t last = record->message_count;
    while (last > 0 && strcmp(record->messages[last - 1].role, "assistant") != 0)
        last--;
    assert_true(last > 1 && last <= 16);
    for (size_t i = 0; i + 1 < last; i++) {
        const struct record_message *message = &record->messages[i];
        bool is_tool = strcmp(message->role, "tool") == 0;
        retelling->messages[retelling->count++] = (struct task_message){is_tool ? (char *)"user" : message->role,
                                                                        message->content};
    }
}

/*
 * A greedy model's tokens are here those that its text is tokenized to (they need not be), so
 * that the whole conversation, rendered again by the server, must be the ids put together from
 * the first prompt, what was sampled, and the bridges.
 */
static void a_greedy_conversation_is_what_the_template_renders_whole(void **state)
{
    (void)state;
    open_world();
    struct attempt attempt = {
        .json = "{'task': 't', 'agent': {'kind': 'bash', 'max_turns': 3}, 'messages': [" SHOWN
                "{'role': 'user', 'content': 'Write hello into b.txt'}], "
                "'limits': {'command_s': 2}, 'sampling': {'temperature': 0.0, 'max_tokens': 60}}"};
    attempt_run(&world, &attempt);
    assert_record_is_the_log(&attempt.record, &world);
    assert_int_equal(sampled_turns(&attempt.record), 3);
    struct retelling retelling = {0};
    retelling_add(&retelling, &attempt.record);
    world_run(&world, retell, &retelling, 0, 1);
    assert_int_equal(retelling.code, 0);
    const struct record_turn *last = turn_in_role(&attempt.record, "assistant", 2);
    assert_int_equal(retelling.ids.count, last->offset);
    assert_memory_equal(retelling.ids.ids, attempt.record.traces[0].token_ids, last->offset * sizeof(uint32_t));
    tokens_finish(&retelling.ids);
    attempt_finish(&attempt);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chat_records_what_the_server_sampled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bash_turns_extend_one_another_id_for_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turns_of_calls_extend_one_another_id_for_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tokens_inside_characters_have_logprobs_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_greedy_conversation_is_what_the_template_renders_whole, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
