/* The spans of a trajectory: what is recorded, each once, in its order. */
#include "tests/client/trace/trace_world.h"

enum { END_S = 1700000000 };

static void stages_end_where_the_rollout_ended(void **state)
{
    struct sluice_trajectory t = trajectory_of(NULL, 0, NULL, 0);
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_int_equal(list.count, 5);
    assert_int_equal(list.items[0].start_us, (int64_t)END_S * 1000000 - 10600000);
    assert_int_equal(list.items[0].duration_us, 10600000);
    const struct span *queue = span_of(&list, SPAN_QUEUE, 0), *run = span_of(&list, SPAN_RUN, 0),
                      *eval = span_of(&list, SPAN_EVAL, 0);
    assert_int_equal(queue->start_us, list.items[0].start_us);
    assert_int_equal(run->start_us, queue->start_us + 300000);
    assert_int_equal(eval->start_us + eval->duration_us, (int64_t)END_S * 1000000);
    assert_int_equal(eval->parent, 0);
}

static void what_never_began_has_no_span(void **state)
{
    struct sluice_trajectory t = trajectory_of(NULL, 0, NULL, 0);
    AUTO_SPANS list = {0};
    (void)state;
    t.run_ms = t.eval_ms = t.wait_ms = 0;
    assert_true(span_list_make(&list, &t));
    assert_int_equal(list.count, 2);
    assert_int_equal(list.items[1].kind, SPAN_INIT);
}

static void turns_stand_one_behind_the_other_with_their_calls(void **state)
{
    const struct sluice_turn turns[] = {TOLD("prompt", 0), SAID(1.5),       TOLD("tool", 0.25),
                                        SAID(2),           TOLD("user", 0), SAID(0.5)};
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    const struct sluice_message messages[] = {USER, REPLY, TOOL("bash: ls"), REPLY, USER, REPLY, TOOL("submit: done")};
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_int_equal(count_of(&list, SPAN_TURN), 3);
    assert_int_equal(count_of(&list, SPAN_ENGINE), 3);
    assert_int_equal(count_of(&list, SPAN_TOOL), 2);
    const int64_t run_us = span_of(&list, SPAN_RUN, 0)->start_us;
    const struct span *first = span_of(&list, SPAN_TURN, 0), *second = span_of(&list, SPAN_TURN, 1),
                      *bash = span_of(&list, SPAN_TOOL, 0), *submit = span_of(&list, SPAN_TOOL, 1);
    assert_string_equal(first->name, "turn 1");
    assert_int_equal(first->start_us, run_us);
    assert_int_equal(first->duration_us, 1750000);
    assert_int_equal(second->start_us, run_us + 1750000);
    assert_string_equal(bash->name, "bash");
    assert_int_equal(bash->start_us, run_us + 1500000);
    assert_int_equal(bash->duration_us, 250000);
    assert_ptr_equal(&list.items[bash->parent], first);
    assert_true(bash->is_timed);
    assert_string_equal(submit->name, "submit");
    assert_false(submit->is_timed);
    assert_int_equal(submit->duration_us, 0);
    assert_string_equal(list.items[submit->parent].name, "turn 3");
    assert_ptr_equal(span_of(&list, SPAN_ENGINE, 1)->call, &turns[3]);
}

static void calls_of_one_reply_whose_time_is_one_are_one_span(void **state)
{
    const struct sluice_turn turns[] = {TOLD("prompt", 0), SAID(1), TOLD("tool", 3)};
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    const struct sluice_message messages[] = {USER, REPLY, TOOL("bash: a"), TOOL("python: b")};
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_int_equal(count_of(&list, SPAN_TOOL), 1);
    assert_string_equal(span_of(&list, SPAN_TOOL, 0)->name, "bash, python");
    assert_int_equal(span_of(&list, SPAN_TOOL, 0)->calls, 2);
}

static void a_new_traces_prompt_holds_the_call_before_it(void **state)
{
    const struct sluice_turn first[] = {TOLD("prompt", 0), SAID(1)}, second[] = {TOLD("prompt", 2), SAID(3)};
    const struct sluice_trace traces[] = {trace_of(first, COUNT(first)), trace_of(second, COUNT(second))};
    const struct sluice_message messages[] = {USER, REPLY, TOOL("bash: a"), REPLY};
    struct sluice_trajectory t = trajectory_of(traces, 2, messages, COUNT(messages));
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_false(list.has_lanes);
    assert_int_equal(count_of(&list, SPAN_TOOL), 1);
    assert_int_equal(span_of(&list, SPAN_TOOL, 0)->duration_us, 2000000);
    assert_string_equal(list.items[span_of(&list, SPAN_TOOL, 0)->parent].name, "turn 1");
    assert_int_equal(span_of(&list, SPAN_TURN, 1)->start_us, span_of(&list, SPAN_RUN, 0)->start_us + 3000000);
}

static void what_the_task_brought_along_is_no_call(void **state)
{
    const struct sluice_turn turns[] = {TOLD("prompt", 0), SAID(1)};
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    const struct sluice_message messages[] = {
        USER, {.role = "assistant", .content = "an example"}, TOOL("bash: example"), USER, REPLY};
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_int_equal(count_of(&list, SPAN_TOOL), 0);
}

static void conversations_side_by_side_have_lanes_and_each_call_once(void **state)
{
    const struct sluice_turn main_turns[] = {TOLD("prompt", 0), SAID(6), TOLD("tool", 0), SAID(3)};
    const struct sluice_turn sub_turns[] = {TOLD("prompt", 0), SAID(7)};
    const struct sluice_stretch main_said[] = {{0, 3}, {5, 1}}, sub_said[] = {{0, 2}, {3, 2}};
    struct sluice_trace traces[] = {trace_of(main_turns, COUNT(main_turns)), trace_of(sub_turns, COUNT(sub_turns))};
    traces[0].messages = main_said;
    traces[1].messages = sub_said;
    traces[0].stretch_count = traces[1].stretch_count = 2;
    /* The sub-agent's conversation begins with the main one's first reply, which another trace sampled. */
    const struct sluice_message messages[] = {USER, REPLY, TOOL("task: go"), USER, REPLY, REPLY};
    struct sluice_trajectory t = trajectory_of(traces, 2, messages, COUNT(messages));
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_true(list.has_lanes);
    assert_int_equal(count_of(&list, SPAN_ENGINE), 3);
    assert_int_equal(count_of(&list, SPAN_TOOL), 1);
    assert_false(span_of(&list, SPAN_TOOL, 0)->is_timed);
    const struct span *run = span_of(&list, SPAN_RUN, 0), *sub = span_of(&list, SPAN_TURN, 2);
    assert_int_equal(run->duration_us, 10000000);
    assert_int_equal(sub->start_us, run->start_us);
    assert_int_equal(span_of(&list, SPAN_TURN, 0)->lane, 1);
    assert_int_equal(sub->lane, 2);
    assert_int_equal(sub->trace, 1);
}

static void stretches_beyond_the_messages_are_borne(void **state)
{
    const struct sluice_turn turns[] = {SAID(1), SAID(1)};
    const struct sluice_stretch said[] = {{0, 9}, {4000000000u, 5}};
    struct sluice_trace trace = trace_of(turns, COUNT(turns));
    trace.messages = said;
    trace.stretch_count = 2;
    const struct sluice_message messages[] = {USER};
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    AUTO_SPANS list = {0};
    (void)state;
    assert_true(span_list_make(&list, &t));
    assert_int_equal(count_of(&list, SPAN_ENGINE), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_end_where_the_rollout_ended),
        cmocka_unit_test(what_never_began_has_no_span),
        cmocka_unit_test(turns_stand_one_behind_the_other_with_their_calls),
        cmocka_unit_test(calls_of_one_reply_whose_time_is_one_are_one_span),
        cmocka_unit_test(a_new_traces_prompt_holds_the_call_before_it),
        cmocka_unit_test(what_the_task_brought_along_is_no_call),
        cmocka_unit_test(conversations_side_by_side_have_lanes_and_each_call_once),
        cmocka_unit_test(stretches_beyond_the_messages_are_borne),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
