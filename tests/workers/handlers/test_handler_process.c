/* Processes of handlers that begin badly, die, break the protocol, or will not end; and what becomes of their jobs. */
#include "tests/workers/handlers/handler_world.h"

static const struct to_judge nothing;

static void start_good(void)
{
    start_handler("mine=%s");
    wait_for_offers();
}

/* It is killed for it, its job is lost as a handler's fault, and the next process works. */
static void expect_break(const char *name, const char *words)
{
    expect_evaluation(name, nothing, OUTCOME_INFRA, FAULT_HANDLER, words);
    wait_for_offers();
    expect_score("grade", nothing, 0.5, "half");
}

FIBER_TEST(a_process_that_dies_takes_its_jobs_with_it_and_is_started_again)
{
    start_good();
    expect_break("dying", "the handler mine: it ended with exit status 3");
}

FIBER_TEST(two_answers_break_the_protocol)
{
    start_good();
    struct job job = evaluate("twice", nothing); /* the first may have come alone */
    assert_true(job.result.outcome == OUTCOME_OK || job.result.fault == FAULT_HANDLER);
    end_evaluation(&job);
    wait_until(!handlers_offers(context.handlers)[0]);
    assert_non_null(strstr(handlers_error(context.handlers), "which it had ended"));
}

FIBER_TEST(a_request_while_one_is_open_breaks_the_protocol)
{
    start_good();
    expect_break("two_at_once", "of which a request is open");
}

FIBER_TEST(an_answer_for_another_role_breaks_the_protocol)
{
    start_good();
    expect_break("other_role", "it sent handler.output of job 1, which is of the role evaluator");
}

FIBER_TEST(a_job_that_it_was_not_given_breaks_the_protocol)
{
    start_good();
    expect_break("stranger", "which it was not given");
}

FIBER_TEST(oversized_and_broken_frames_break_the_protocol)
{
    start_good();
    expect_break("oversized", "it sent a frame of 2147483647 bytes");
    expect_break("garbage", "it sent something that is not a message");
    expect_break("not_finite", "reward is not a finite number");
}

FIBER_TEST(a_process_that_exits_at_its_start_offers_nothing_and_says_why)
{
    start_handler("mine=%s exits");
    wait_until(handlers_error(context.handlers));
    assert_string_equal(handlers_error(context.handlers), "the handler mine is not ready: it ended with exit status 4");
    assert_string_equal(handlers_offers(context.handlers), "");
    expect_evaluation("grade", nothing, OUTCOME_INFRA, FAULT_HANDLER, "it ended with exit status 4");
}

FIBER_TEST(a_command_that_cannot_be_executed_says_so)
{
    start_handler("mine=/not/there/%s");
    wait_until(handlers_error(context.handlers));
    assert_non_null(strstr(handlers_error(context.handlers), "it ended with exit status 127"));
}

static void expect_refused_hello(const char *text, const char *words)
{
    start_handler(text);
    wait_until(handlers_error(context.handlers));
    if (!strstr(handlers_error(context.handlers), words))
        fail_msg("%s: %s", text, handlers_error(context.handlers));
    assert_string_equal(handlers_offers(context.handlers), "");
    handlers_destroy(&context.handlers);
}

FIBER_TEST(a_hello_that_is_malformed_offers_built_in_names_or_comes_second_is_refused)
{
    expect_refused_hello("mine=%s malformed", "offers[0] has no role");
    expect_refused_hello("mine=%s built-in", "offers[0] has the name of what is built in: math");
    expect_refused_hello("mine=%s hasty", "it sent handler.score before handler.hello");
}

FIBER_TEST(a_hello_that_does_not_come_is_not_awaited_for_ever)
{
    const char *const text = "mine=%s mute";
    start_handlers(STAGE_EVAL, 1, &text, 1);
    handlers_set_hello(context.handlers, 50);
    wait_until(handlers_error(context.handlers));
    assert_non_null(strstr(handlers_error(context.handlers), "it sent no handler.hello within"));
}

static bool is_alive(pid_t pid) { return kill(pid, 0) == 0; }

FIBER_TEST(children_that_it_left_end_with_it_also_those_in_a_session_of_their_own)
{
    start_good();
    struct job job = evaluate("leaving_children", nothing);
    expect(&job, OUTCOME_OK, "");
    const pid_t child = atoi(job.result.detail);
    end_evaluation(&job);
    assert_true(child > 1 && is_alive(child));
    expect_evaluation("dying", nothing, OUTCOME_INFRA, FAULT_HANDLER, "");
    wait_until(!is_alive(child));
}

FIBER_TEST(the_end_of_the_worker_ends_its_handlers_and_their_children)
{
    start_good();
    struct job job = evaluate("leaving_children", nothing);
    const pid_t child = atoi(job.result.detail);
    end_evaluation(&job);
    handlers_destroy(&context.handlers);
    wait_until(!is_alive(child));
}

FIBER_TEST(told_to_stop_it_sees_the_end_of_its_socket_and_ends)
{
    start_good();
    handlers_stop(context.handlers);
    wait_until(handlers_are_over(context.handlers));
}

FIBER_TEST(one_that_neither_reads_nor_heeds_a_signal_is_killed)
{
    start_handler("mine=exec %s stubborn");
    wait_for_offers();
    expect_evaluation("deaf", (struct to_judge){.more = "\"limits\":{\"eval_s\":1}"}, OUTCOME_TASK, FAULT_NONE,
                      "deaf had not ended");
    const int64_t began_ms = loop_now_ms();
    handlers_stop(context.handlers);
    wait_until(handlers_are_over(context.handlers));
    assert_true(loop_now_ms() - began_ms >= HANDLER_KILL_MS - 100);
}

/* ---- one that never reads ------------------------------------------------------------------- */

struct judging {
    struct fiber *fiber;
    const char *name;
    char *answer;
    bool has_ended;
    enum fault fault;
};

static void judge(void *arg)
{
    struct judging *judging = arg;
    struct job job = evaluate(judging->name, (struct to_judge){.answer = judging->answer});
    judging->fault = job.result.fault;
    end_evaluation(&job);
}

static void judged(void *arg) { ((struct judging *)arg)->has_ended = true; }

FIBER_TEST(one_that_never_reads_is_killed_once_its_queue_is_full)
{
    enum { ANSWER_BYTES = 65536, JOBS = HANDLER_QUEUE_MAX / ANSWER_BYTES + 64 };
    struct judging *all = calloc(JOBS, sizeof(*all));
    AUTO_FREE char *answer = malloc(ANSWER_BYTES + 1);
    memset(answer, 'x', ANSWER_BYTES);
    answer[ANSWER_BYTES] = '\0';
    start_good();
    for (size_t i = 0; i < JOBS; i++) {
        all[i] = (struct judging){.name = "deaf", .answer = answer};
        all[i].fiber = fiber_start(loop, judge, judged, &all[i]);
    }
    for (size_t i = 0; i < JOBS; i++) {
        wait_until(all[i].has_ended);
        assert_int_equal(all[i].fault, FAULT_HANDLER);
    }
    free(all);
}

FIBER_TEST(what_it_prints_goes_to_the_log_and_not_into_the_protocol)
{
    start_good();
    expect_score("printing", nothing, 1, "printed");
    expect_score("grade", nothing, 0.5, "half");
}

FIBER_TEST(processes_of_a_pool_share_the_jobs)
{
    const char *const text = "mine=%s";
    start_handlers(STAGE_EVAL, 3, &text, 1);
    wait_for_offers();
    expect_evaluation("dying", nothing, OUTCOME_INFRA, FAULT_HANDLER, "");
    wait_for_offers();
    expect_score("grade", nothing, 0.5, "half");
}

FIBER_TEST(a_handler_is_named_once_and_with_a_command)
{
    struct fail fail;
    static const char *const wrong[][2] = {{"mine", ""},     {"mine=", ""},      {"9x=true", ""},
                                           {"a b=true", ""}, {"mine=json:", ""}, {"mine=true", "mine=false"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct handlers_plan plan = {.stage = STAGE_EVAL,
                                           .texts = wrong[i],
                                           .count = wrong[i][1][0] ? 2 : 1,
                                           .processes = 1,
                                           .scratch = directory};
        assert_null(handlers_create(loop, &plan, &fail));
        assert_int_equal(fail.code, -EINVAL);
        assert_non_null(strstr(fail.text, "--handler"));
    }
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        HANDLER_TEST(a_process_that_dies_takes_its_jobs_with_it_and_is_started_again),
        HANDLER_TEST(two_answers_break_the_protocol),
        HANDLER_TEST(a_request_while_one_is_open_breaks_the_protocol),
        HANDLER_TEST(an_answer_for_another_role_breaks_the_protocol),
        HANDLER_TEST(a_job_that_it_was_not_given_breaks_the_protocol),
        HANDLER_TEST(oversized_and_broken_frames_break_the_protocol),
        HANDLER_TEST(a_process_that_exits_at_its_start_offers_nothing_and_says_why),
        HANDLER_TEST(a_command_that_cannot_be_executed_says_so),
        HANDLER_TEST(a_hello_that_is_malformed_offers_built_in_names_or_comes_second_is_refused),
        HANDLER_TEST(a_hello_that_does_not_come_is_not_awaited_for_ever),
        HANDLER_TEST(children_that_it_left_end_with_it_also_those_in_a_session_of_their_own),
        HANDLER_TEST(the_end_of_the_worker_ends_its_handlers_and_their_children),
        HANDLER_TEST(told_to_stop_it_sees_the_end_of_its_socket_and_ends),
        HANDLER_TEST(one_that_neither_reads_nor_heeds_a_signal_is_killed),
        HANDLER_TEST(one_that_never_reads_is_killed_once_its_queue_is_full),
        HANDLER_TEST(what_it_prints_goes_to_the_log_and_not_into_the_protocol),
        HANDLER_TEST(processes_of_a_pool_share_the_jobs),
        HANDLER_TEST(a_handler_is_named_once_and_with_a_command),
    };
    int failed = cmocka_run_group_tests_name("handler process", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
