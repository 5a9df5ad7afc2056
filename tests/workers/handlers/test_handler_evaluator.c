/* Evaluators of a handler: what they are given, what they may ask for, and what their end means. */
#include "tests/workers/handlers/handler_world.h"

#include "schemas/trajectory/trajectory.h"

static const struct to_judge nothing;

static void start_good(void)
{
    start_handler("mine=%s");
    wait_for_offers();
}

FIBER_TEST(a_handlers_evaluator_gives_the_reward)
{
    start_good();
    assert_non_null(strstr(handlers_offers(context.handlers), "evaluator:grade@2 "));
    expect_score("grade", nothing, 0.5, "half");
}

FIBER_TEST(it_reads_the_answer_and_the_conversation)
{
    AUTO_BUFFER bytes = {0};
    struct record record;
    struct refusal no = {0};
    start_good();
    expect_score("answer", (struct to_judge){.answer = "yes"}, 1, "read");
    expect_score("answer", (struct to_judge){.answer = "no"}, 0, "read");
    expect_score("messages", nothing, 1, "");
    record_init(&record);
    record_say(&record, "user", slice_from_str("1+1?"), NULL, 0);
    record_say(&record, "tool", slice_from_str("2"), "bash: expr 1 + 1", 0);
    assert_true(record_encode(&record, &bytes, &no));
    expect_score("messages", (struct to_judge){.record = buffer_peek(&bytes)}, 1,
                 "[{\"role\":\"user\",\"content\":\"1+1?\"},{\"role\":\"tool\",\"content\":\"2\","
                 "\"tool\":\"bash: expr 1 + 1\",\"exit_status\":0}]");
    record_finish(&record);
}

FIBER_TEST(parts_metrics_and_tests_become_the_verdict)
{
    start_good();
    struct job job = evaluate("parts", nothing);
    const struct verdict *verdict = &job.result.verdict;
    expect(&job, OUTCOME_OK, "");
    assert_true(verdict->reward == 1.25);
    assert_int_equal(verdict->part_count, 2);
    assert_string_equal(verdict->parts[1].name, "form");
    assert_true(verdict->metric_count == 1 && verdict->metrics[0].value == 17);
    assert_true(verdict->tests && verdict->tests->passed == 1 && verdict->tests->failed == 1);
    assert_string_equal(verdict->tests->list[1].message, "no");
    end_evaluation(&job);
}

FIBER_TEST(notes_are_kept_as_metrics_and_a_wrong_one_is_refused_in_words)
{
    start_good();
    struct job job = evaluate("notes", nothing);
    expect(&job, OUTCOME_OK, "noted");
    assert_true(job.result.verdict.reward == 1 && job.result.verdict.metric_count == 2);
    assert_true(job.result.verdict.metrics[0].value == 2);
    end_evaluation(&job);
}

FIBER_TEST(what_is_no_part_of_a_reward_is_a_broken_evaluator)
{
    start_good();
    expect_evaluation("wrong_parts", nothing, OUTCOME_TASK, FAULT_NONE, "the evaluator is broken: parts[0]");
}

FIBER_TEST(a_handler_that_failed_is_the_tasks_fault_with_its_error_and_trace)
{
    start_good();
    expect_evaluation("failing", nothing, OUTCOME_TASK, FAULT_NONE,
                      "the evaluator is broken: KeyError: 'gold': in line 7 of mine.py");
}

FIBER_TEST(the_time_that_is_left_is_told)
{
    start_good();
    expect_score("asks_time", (struct to_judge){.more = "\"limits\":{\"eval_s\":50}"}, 1, "{\"left_ms\":");
}

FIBER_TEST(silence_ends_with_the_stages_time_and_is_the_tasks)
{
    start_good();
    expect_evaluation("silent", (struct to_judge){.more = "\"limits\":{\"eval_s\":1}"}, OUTCOME_TASK, FAULT_NONE,
                      "silent had not ended when the time of the stage was up");
    expect_score("grade", nothing, 0.5, "half"); /* it is not killed for it */
}

FIBER_TEST(an_answer_that_comes_after_the_time_is_ignored)
{
    start_good();
    expect_evaluation("unhurried", (struct to_judge){.more = "\"limits\":{\"eval_s\":1}"}, OUTCOME_TASK, FAULT_NONE,
                      "unhurried had not ended");
    expect_score("grade", nothing, 0.5, "half");
}

FIBER_TEST(a_command_runs_in_the_evaluators_sandbox_with_what_the_agent_left)
{
    start_good();
    struct job run = run_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"echo mine > left\"}", NULL, NULL, NULL);
    expect_score("command_", (struct to_judge){.answer = "the answer\n", .run = &run.result.layer}, 1,
                 "{\"output\":\"mine\\nthe answer\\n0\\n");
    struct job job = evaluate("command_", (struct to_judge){.answer = "a", .run = &run.result.layer});
    expect(&job, OUTCOME_OK, "Read-only file system\\n{\\\"task\\\"\",\"status\":3,\"timed_out\":false");
    end_evaluation(&job);
    end_job(&run);
}

FIBER_TEST(what_is_not_known_of_the_agents_files_is_not_asked_for)
{
    const struct to_judge unknown = {.digest = LAYER_UNKNOWN};
    start_good();
    expect_evaluation("command_", unknown, OUTCOME_AGENT, FAULT_NONE, "what the agent left is not known");
    expect_score("grade", unknown, 0.5, "half");
}

FIBER_TEST(files_are_written_and_read_whole_or_in_part)
{
    start_good();
    expect_score("files", nothing, 1, "No such file");
}

FIBER_TEST(a_handler_that_asks_for_no_file_costs_no_sandbox)
{
    start_good();
    const size_t before = spawner_count(spawner);
    expect_score("grade", (struct to_judge){.more = "\"image\":\"/not/there\""}, 0.5, "half");
    assert_int_equal(spawner_count(spawner), before);
}

FIBER_TEST(an_evaluator_that_nobody_offers_is_a_handlers_fault)
{
    start_good();
    expect_evaluation("unheard_of", nothing, OUTCOME_INFRA, FAULT_HANDLER,
                      "no handler of this worker offers the evaluator unheard_of");
    handlers_destroy(&context.handlers);
    expect_evaluation("grade", nothing, OUTCOME_INFRA, FAULT_HANDLER, "no handler of this worker offers");
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        HANDLER_TEST(a_handlers_evaluator_gives_the_reward),
        HANDLER_TEST(it_reads_the_answer_and_the_conversation),
        HANDLER_TEST(parts_metrics_and_tests_become_the_verdict),
        HANDLER_TEST(notes_are_kept_as_metrics_and_a_wrong_one_is_refused_in_words),
        HANDLER_TEST(what_is_no_part_of_a_reward_is_a_broken_evaluator),
        HANDLER_TEST(a_handler_that_failed_is_the_tasks_fault_with_its_error_and_trace),
        HANDLER_TEST(the_time_that_is_left_is_told),
        HANDLER_TEST(silence_ends_with_the_stages_time_and_is_the_tasks),
        HANDLER_TEST(an_answer_that_comes_after_the_time_is_ignored),
        HANDLER_TEST(a_command_runs_in_the_evaluators_sandbox_with_what_the_agent_left),
        HANDLER_TEST(what_is_not_known_of_the_agents_files_is_not_asked_for),
        HANDLER_TEST(files_are_written_and_read_whole_or_in_part),
        HANDLER_TEST(a_handler_that_asks_for_no_file_costs_no_sandbox),
        HANDLER_TEST(an_evaluator_that_nobody_offers_is_a_handlers_fault),
    };
    int failed = cmocka_run_group_tests_name("handler evaluator", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
