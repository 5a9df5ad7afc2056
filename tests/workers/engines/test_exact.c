/*
 * Exactness against a hostile world, on a real llama.cpp server under chat templates of several
 * families (tests/workers/templates): after whatever a tool may print, the ids of a conversation
 * that was put together turn by turn are those that the engine itself makes of the same turns, or
 * there is no bridge and a reason why. And no output becomes a special token.
 * Needs SLUICE_LLAMA_SERVER and SLUICE_MODEL (bash tests/run.sh sets them); says so if not.
 */
#include "tests/workers/engines/exact_world.h"

static void assert_no_bridge(enum tell_role role, const char *reply, const char *reason)
{
    struct text_check saying = {
        .role = role, .lead = "", .reply = reply, .contents = {slice_from_str("x")}, .count = 1};
    world_run(&world, say, &saying, 0, 1);
    assert_int_equal(saying.code, -ENOTSUP);
    if (strncmp(saying.fail.text, reason, strlen(reason)) != 0)
        fail_msg("'%s' is not '%s'", saying.fail.text, reason);
    text_check_finish(&saying);
}

#define THOUGHT "<think>\nhm\n</think>\n\nI look."

static void chatml_is_extended_exactly(void **state)
{
    (void)state;
    open_family("chatml.jinja");
    go_direct();
    assert_all_exact(TELL_USER, true, "", REPLY);
    assert_all_exact(TELL_TOOL, true, "", THOUGHT);
    assert_rows_exact(true, THOUGHT);
    close_family();
}

/* Its "\n\n" before a reply is one token, and two before text that follows: for this vocabulary. */
static void llama_3_is_extended_exactly(void **state)
{
    (void)state;
    open_family("llama3.jinja");
    go_direct();
    assert_all_exact(TELL_USER, false, "", REPLY);
    assert_all_exact(TELL_TOOL, false, "", REPLY);
    assert_rows_exact(false, REPLY);
    close_family();
}

/* What it thought goes when the user speaks, and stays when a tool does. */
static void qwen_3_is_extended_exactly_but_where_it_forgets_what_it_thought(void **state)
{
    (void)state;
    open_family("qwen3.jinja");
    go_direct();
    assert_all_exact(TELL_USER, true, "", REPLY);
    assert_all_exact(TELL_TOOL, true, "", THOUGHT);
    assert_rows_exact(true, THOUGHT);
    assert_no_bridge(TELL_USER, THOUGHT, "rewrite: the template does not keep the reply");
    close_family();
}

static void mistral_is_extended_exactly_and_has_no_tools_in_this_template(void **state)
{
    (void)state;
    open_family("mistral.jinja");
    go_direct();
    assert_all_exact(TELL_USER, true, " ", REPLY);
    assert_no_bridge(TELL_TOOL, REPLY, "template: it takes no turns of the role tool");
    close_family();
}

static void gemma_is_extended_exactly_and_has_no_tools_in_this_template(void **state)
{
    (void)state;
    open_family("gemma.jinja");
    go_direct();
    assert_all_exact(TELL_USER, true, "", REPLY);
    assert_no_bridge(TELL_TOOL, REPLY, "template: it takes no turns of the role tool");
    close_family();
}

static void a_prompt_that_begins_the_thinking_is_never_extended(void **state)
{
    (void)state;
    open_family("primed.jinja");
    go_direct();
    assert_no_bridge(TELL_USER, REPLY, "rewrite: what the template writes before a reply");
    close_family();
}

/* ---- whole rollouts ------------------------------------------------------------------------ */

static size_t traces_for(const struct record *record, const char *reason)
{
    size_t count = 0;
    for (size_t i = 0; i < record->trace_count; i++)
        count += strncmp(record->traces[i].reason, reason, strlen(reason)) == 0;
    return count;
}

/* Each turn a trace of its own, each prompt what the server was asked. */
static void rollouts_go_on_where_no_turn_can_be_extended(void **state)
{
    (void)state;
    open_family("primed.jinja");
    struct attempt attempt = {.json = "{'task': 't', 'prompt': 'List the files.', 'agent': {'kind': 'bash'}, "
                                      "'limits': {'command_s': 2}, 'sampling': {'max_tokens': 24, 'seed': 3}}"};
    attempt_run(&world, &attempt);
    assert_int_equal(attempt.outcome, OUTCOME_AGENT);
    assert_record_is_the_log(&attempt.record, &world);
    assert_true(attempt.record.trace_count >= 3);
    assert_int_equal(traces_for(&attempt.record, "rewrite: ") + traces_for(&attempt.record, "cut: "),
                     attempt.record.trace_count - 1);
    attempt_finish(&attempt);
    close_family();
}

static uint32_t sampled_in(const char *max_tokens, char finish[16])
{
    char json[512];
    snprintf(json, sizeof(json),
             "{'task': 't', 'prompt': 'Say yes.', 'agent': {'kind': 'chat'}, "
             "'sampling': {'temperature': 0.0, 'max_tokens': %s}}",
             max_tokens);
    struct attempt attempt = {.json = json};
    attempt_run(&world, &attempt);
    const struct record_turn *turn = turn_in_role(&attempt.record, "assistant", 0);
    const uint32_t length = turn->length;
    memcpy(finish, turn->finish, 16);
    attempt_finish(&attempt);
    return length;
}

/* The limit falls on the end token itself, and on the token before it. */
static void a_limit_that_falls_on_the_end_token_cuts_nothing(void **state)
{
    (void)state;
    char number[16], finish[16];
    open_family(NULL);
    const uint32_t length = sampled_in("200", finish);
    assert_string_equal(finish, "stop");
    snprintf(number, sizeof(number), "%u", length);
    assert_int_equal(sampled_in(number, finish), length);
    assert_string_equal(finish, "stop");
    snprintf(number, sizeof(number), "%u", length - 1);
    assert_int_equal(sampled_in(number, finish), length - 1);
    assert_string_equal(finish, "length");
    close_family();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(chatml_is_extended_exactly),
        TEST(llama_3_is_extended_exactly),
        TEST(qwen_3_is_extended_exactly_but_where_it_forgets_what_it_thought),
        TEST(mistral_is_extended_exactly_and_has_no_tools_in_this_template),
        TEST(gemma_is_extended_exactly_and_has_no_tools_in_this_template),
        TEST(a_prompt_that_begins_the_thinking_is_never_extended),
        TEST(rollouts_go_on_where_no_turn_can_be_extended),
        TEST(a_limit_that_falls_on_the_end_token_cuts_nothing),
    };
    return cmocka_run_group_tests(tests, make_big, free_big);
}
