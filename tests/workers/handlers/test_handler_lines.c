/* Handlers that speak lines of JSON: the examples of client/handlers, the messages as lines,
 * and lines that are none. */
#include "tests/workers/handlers/handler_run_world.h"

#include "workers/handlers/wire/json_lines.h"

static const struct to_judge nothing;

/* ---- the examples ---------------------------------------------------------------------------- */

FIBER_TEST(the_example_in_shell_looks_into_the_sandbox)
{
    start_handler("mine=json:sh " SOURCE_DIR "/client/handlers/has_answer.sh %s");
    wait_for_offers();
    struct job run = run_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"echo 42 > answer.txt\"}", NULL, NULL, NULL);
    expect_score("has_answer", (struct to_judge){.run = &run.result.layer}, 1, "answer.txt is there");
    expect_score("has_answer", nothing, 0, "there is no answer.txt");
    end_job(&run);
}

FIBER_TEST(the_example_in_c_judges_and_counts)
{
    start_handler("mine=json:" WORD_COUNT " %s");
    wait_for_offers();
    assert_string_equal(handlers_offers(context.handlers), "evaluator:brief@1");
    expect_score("brief", (struct to_judge){.answer = "The sea is \"wide\",\nand\x01 blue."}, 1, "");
    expect_score("brief",
                 (struct to_judge){.answer = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25"}, 0.8,
                 "");
    handlers_destroy(&context.handlers);
    const char *const text = "mine=json:" WORD_COUNT " %s";
    start_handlers(STAGE_RUN, 1, &text, 1);
    wait_for_offers();
    world_open_on(&world, loop,
                  "{'context': 32768, 'rules': [{'replies': ['<tool_call>\\n{\\\"name\\\": \\\"word_count\\\", "
                  "\\\"arguments\\\": {\\\"text\\\": \\\"a b c\\\"}}\\n</tool_call>', 'done']}]}",
                  NULL);
    struct attempt attempt = {
        .json = "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'tools', 'tools': ['word_count']}}"};
    run_with_handlers(&agent_tools, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "2 turns");
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "3 words");
    attempt_finish(&attempt);
    world_close(&world);
}

/* ---- lines that are no messages ----------------------------------------------------------------- */

/* A handler of a shell that says these lines, and then reads on. */
static void expect_broken(const char *says, const char *words)
{
    char text[400];
    snprintf(text, sizeof(text), "mine=json:%s; exec cat > /dev/null", says);
    start_handlers(STAGE_EVAL, 1, (const char *const[]){text}, 1);
    wait_until(handlers_error(context.handlers));
    if (!strstr(handlers_error(context.handlers), words))
        fail_msg("%s: %s", says, handlers_error(context.handlers));
    handlers_destroy(&context.handlers);
}

FIBER_TEST(a_line_that_is_no_message_breaks_the_protocol)
{
    expect_broken("echo starting up", "\"starting up\" is not a JSON object");
    expect_broken("echo \"[]\"", "\"[]\" is not a JSON object");
    expect_broken("echo '{\"type\":\"handler.greeting\"}'", "there is no message of the type \"handler.greeting\"");
    expect_broken("echo '{\"type\":\"handler.hello\",\"protocol\":1,\"offer\":[]}'", "has no field offer");
    expect_broken("echo '{\"type\":\"handler.hello\",\"protocol\":1}'", "offers is missing");
    expect_broken("echo '{\"type\":\"handler.hello\",\"protocol\":\"1\",\"offers\":[]}'", "another type");
    expect_broken("echo '{\"type\":\"worker.beat\"}'", "is missing");
    expect_broken("printf '%%100000d' 1 | tr ' ' '['; echo", "nested deeper than 64");
    expect_broken("head -c 40000000 /dev/zero", "a line of more than");
}

/* Its job is lost then, and not at the end of the stage's time. */
FIBER_TEST(one_that_closes_its_output_and_reads_on_is_ended)
{
    const char *const text =
        "mine=json:echo '{\"type\":\"handler.hello\",\"protocol\":1,\"offers\":[{\"role\":"
        "\"evaluator\",\"name\":\"quiet\",\"version\":\"1\"}]}'; read begin; exec 1>&-; while read "
        "line; do :; done; sleep 600";
    expect_broken("exec 1>&-", "it closed its socket, and ran on");
    start_handlers(STAGE_EVAL, 1, &text, 1);
    wait_for_offers();
    const int64_t begun_ms = loop_now_ms();
    expect_evaluation("quiet", nothing, OUTCOME_INFRA, FAULT_HANDLER, "it closed its socket, and ran on");
    assert_true(loop_now_ms() - begun_ms < WORLD_WAIT_MS);
}

/* What it is sent is more than a socket holds, and waits for it. */
FIBER_TEST(one_that_reads_late_is_sent_all_of_a_long_conversation)
{
    enum { LEN = 3000000 };
    const char *const text =
        "mine=json:echo '{\"type\":\"handler.hello\",\"protocol\":1,\"offers\":[{\"role\":"
        "\"evaluator\",\"name\":\"late\",\"version\":\"1\"}]}'; sleep 0.5; n=$(head -n 1 | wc -c); "
        "echo '{\"type\":\"handler.score\",\"id\":1,\"reward\":'$n'}'; cat > /dev/null";
    AUTO_BUFFER bytes = {0};
    AUTO_FREE char *words = malloc(LEN);
    struct record record;
    struct refusal no = {0};
    memset(words, 'a', LEN);
    record_init(&record);
    record_say(&record, "user", slice_of(words, LEN), NULL, 0);
    assert_true(record_encode(&record, &bytes, &no));
    start_handlers(STAGE_EVAL, 1, &text, 1);
    wait_for_offers();
    struct job job = evaluate("late", (struct to_judge){.record = buffer_peek(&bytes)});
    expect(&job, OUTCOME_OK, "");
    assert_true(job.result.verdict.reward > LEN);
    end_evaluation(&job);
    record_finish(&record);
}

FIBER_TEST(what_is_said_on_standard_error_is_no_line_of_the_protocol)
{
    const char *const text = "mine=json:echo starting up >&2; exec " WORD_COUNT " %s";
    start_handlers(STAGE_EVAL, 1, &text, 1);
    wait_for_offers();
    expect_score("brief", (struct to_judge){.answer = "yes"}, 1, "");
}

/* ---- messages as lines ------------------------------------------------------------------------------ */

static void bytes_are_text_where_they_can_be(void **state)
{
    static const struct slice datas[] = {{(const uint8_t *)"hello", 5}, {(const uint8_t *)"a\0\xff", 3}, {NULL, 0}};
    static const char *const lines[] = {
        "{\"type\":\"handler.write\",\"id\":1,\"call\":2,\"path\":\"p\",\"data\":\"hello\"}\n",
        "{\"type\":\"handler.write\",\"id\":1,\"call\":2,\"path\":\"p\",\"data_base64\":\"YQD/\"}\n",
        "{\"type\":\"handler.write\",\"id\":1,\"call\":2,\"path\":\"p\",\"data\":\"\"}\n"};
    (void)state;
    for (size_t i = 0; i < COUNT(datas); i++) {
        AUTO_BUFFER line = {0};
        AUTO_BUFFER back = {0};
        AUTO_BUFFER bytes = {0};
        struct refusal no = {0};
        const struct msg_handler_write write = {
            .id = 1, .call = 2, .path = slice_from_str("p"), .data = datas[i].data ? datas[i] : slice_from_str("")};
        assert_true(json_lines_encode(MSG_handler_write, &write, &line, &no));
        assert_true(slice_is(buffer_peek(&line), lines[i]));
        line.len--;
        assert_true(json_lines_decode(buffer_peek(&line), &back, &no));
        assert_true(message_encode(MSG_handler_write, &write, &bytes, &no));
        assert_true(slice_equal(buffer_peek(&back), buffer_peek(&bytes)));
    }
}

static void what_is_json_is_a_value_in_a_line(void **state)
{
    AUTO_BUFFER line = {0};
    AUTO_BUFFER back = {0};
    struct msg_handler_score score;
    struct refusal no = {0};
    (void)state;
    const struct msg_handler_begin begin = {.id = 1,
                                            .role = slice_from_str("tool"),
                                            .name = slice_from_str("n"),
                                            .rollout = slice_from_str("g/0"),
                                            .task = slice_from_str("{\"task\":\"t\"}")};
    assert_true(json_lines_encode(MSG_handler_begin, &begin, &line, &no));
    assert_true(slice_is(buffer_peek(&line), "{\"type\":\"handler.begin\",\"id\":1,\"role\":\"tool\",\"name\":\"n\","
                                             "\"rollout\":\"g/0\",\"sample\":0,\"left_ms\":0,"
                                             "\"task\":{\"task\":\"t\"}}\n"));
    assert_true(json_lines_decode(slice_from_str("{\"type\":\"handler.score\",\"id\":3,\"reward\":1,\"detail\":null,"
                                                 "\"parts\":[{\"name\":\"a\",\"value\":1}]}"),
                                  &back, &no));
    assert_true(message_decode(MSG_handler_score, buffer_peek(&back), &score, &no));
    assert_true(score.reward == 1 && !score.has_detail && slice_is(score.parts, "[{\"name\":\"a\",\"value\":1}]"));
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        HANDLER_TEST(the_example_in_shell_looks_into_the_sandbox),
        HANDLER_TEST(the_example_in_c_judges_and_counts),
        HANDLER_TEST(a_line_that_is_no_message_breaks_the_protocol),
        HANDLER_TEST(one_that_closes_its_output_and_reads_on_is_ended),
        HANDLER_TEST(one_that_reads_late_is_sent_all_of_a_long_conversation),
        HANDLER_TEST(what_is_said_on_standard_error_is_no_line_of_the_protocol),
        cmocka_unit_test(bytes_are_text_where_they_can_be),
        cmocka_unit_test(what_is_json_is_a_value_in_a_line),
    };
    int failed = cmocka_run_group_tests_name("handler lines", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
