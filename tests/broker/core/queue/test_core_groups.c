/* The life of groups and rollouts: submit, stages, outcomes, ends. */
#include "tests/broker/core/core_world.h"

static void a_submit_is_persisted_and_then_accepted(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "add-17", 8);
    const struct seen *persist = expect(world, PERSIST_GROUP);
    assert_string_equal(persist->group, "add-17");
    assert_string_equal(persist->stream, "train");
    assert_int_equal(persist->samples, 8);
    const struct seen *answer = expect_answer(world, MSG_group_accepted);
    assert_string_equal(answer->client, "trainer");
    assert_int_equal(answer->tag, 7);
    assert_int_equal(answer->samples, 8);
    assert_false(answer->known);
    world_close(world);
}

static void the_same_group_again_is_known_and_not_persisted_again(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "add-17", 8);
    world_submit(world, "add-17", 8);
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    assert_int_equal(seen_count(world, PERSIST_GROUP), 0);
    world_close(world);
}

static void a_group_of_the_past_is_known_by_what_the_ledger_says_of_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "new", 8);
    world->task.is_past = true;
    world->task.past_hash = '{' * 31 + '}'; /* as the world makes it of "{}" */
    world_submit(world, "old", 8);
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    assert_int_equal(seen_count(world, PERSIST_GROUP), 0);
    world_submit_task(world, "old", "train", 8, "{\"prompt\":\"2+2?\"}");
    assert_string_equal(expect_refused(world, REFUSAL_GROUP_EXISTS)->field, "group");
    assert_int_equal(seen_count(world, PERSIST_GROUP), 0);
    world_close(world);
}

static void another_content_under_the_same_id_is_refused(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "add-17", 8);
    world_submit_task(world, "add-17", "train", 8, "{\"prompt\":\"2+2?\"}");
    assert_string_equal(expect_refused(world, REFUSAL_GROUP_EXISTS)->field, "group");
    world_submit_task(world, "add-17", "other", 8, "{}");
    expect_refused(world, REFUSAL_GROUP_EXISTS);
    world_submit_task(world, "add-17", "train", 9, "{}");
    expect_refused(world, REFUSAL_GROUP_EXISTS);
    world_close(world);
}

static void names_with_slashes_or_blanks_are_refused(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "a/b", 1);
    assert_string_equal(expect_refused(world, REFUSAL_BAD_NAME)->field, "group");
    world_submit_task(world, "ab", "my stream", 1, "{}");
    assert_string_equal(expect_refused(world, REFUSAL_BAD_NAME)->field, "stream");
    assert_int_equal(seen_count(world, PERSIST_GROUP), 0);
    world_close(world);
}

static void a_full_queue_refuses_and_stays_as_it_was(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.rollouts_max = 10;
    world_start(world);
    world_submit(world, "a", 8);
    world_submit(world, "b", 3);
    assert_true(expect_refused(world, REFUSAL_QUEUE_FULL)->retry_ms > 0);
    assert_int_equal(world->seen_count, 1);
    world_get(world, "b/0");
    expect_refused(world, REFUSAL_UNKNOWN_ROLLOUT);
    world_submit(world, "b", 2);
    assert_false(expect_answer(world, MSG_group_accepted)->known);
    world_submit(world, "a", 8);
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    world_cancel(world, NULL, "a", NULL);
    world_submit(world, "c", 8);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void a_task_that_needs_an_engine_is_refused_without_one(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.needs_engine = true;
    world_submit(world, "a", 1);
    assert_string_equal(expect_refused(world, REFUSAL_NO_ENGINE)->field, "task");
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    world_submit(world, "a", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void a_rollout_goes_through_init_run_and_eval_to_its_reward(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 1, NULL);
    world_beat(world, "r1", "run", 1, NULL);
    world_beat(world, "e1", "eval", 1, NULL);
    world_submit(world, "g", 1);
    uint64_t token = expect_job(world, "i1", "init:g");
    assert_int_equal(token >> 32, world->epoch);
    world->now_ms += 100;
    struct msg_job_result init = {.layer_digest = TEXT("sha256:ab"), .ms = 40};
    world_result_with(world, "i1", "init:g", token, "ok", init);
    assert_int_equal(expect(world, PERSIST_INIT)->ms, 40);
    assert_true(was_told(world, "i1", MSG_result_ack, "init:g"));
    token = expect_job(world, "r1", "run:g/0");
    assert_string_equal(expect(world, LANE_JOB)->rollout, "g/0");
    struct msg_job_result run = {
        .ms = 5100, .record = TEXT("RECORD"), .has_record = true, .detail = TEXT("3 turns"), .has_detail = true};
    world_result_with(world, "r1", "run:g/0", token, "ok", run);
    assert_string_equal(expect(world, PERSIST_RUN)->record, "RECORD");
    assert_string_equal(expect(world, PERSIST_RUN)->detail, "3 turns");
    token = expect_job(world, "e1", "eval:g/0");
    world_reward(world, "e1", "eval:g/0", token, 0.5);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_OK);
    assert_true(end->end.trainable);
    assert_true(end->end.has_reward);
    assert_true(end->end.reward == 0.5);
    assert_int_equal(end->end.seq, 1);
    assert_int_equal(end->end.init_ms, 40);
    assert_int_equal(end->end.run_ms, 5100);
    assert_int_equal(end->end.eval_ms, 35);
    assert_int_equal(end->end.ended_ms, WALL_MS);
    assert_string_equal(end->end_layer, "sha256:ab");
    assert_string_equal(end->end_detail, "3 turns");
    assert_string_equal(end->record, "");
    world_close(world);
}

static void queued_time_of_all_stages_is_counted(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 1);
    world->now_ms += 70;
    world_beat(world, "i1", "init", 1, NULL);
    world_result(world, "i1", "init:g", expect_job(world, "i1", "init:g"), "ok");
    world->now_ms += 300;
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world->now_ms += 1000; /* at work, not waiting */
    world_result(world, "r1", "run:g/0", token, "ok");
    world->now_ms += 5;
    world_beat(world, "e1", "eval", 1, NULL);
    world_reward(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), 1);
    assert_int_equal(expect_end(world, "g/0", OUTCOME_OK)->end.wait_ms, 375);
    world_close(world);
}

static void the_outcome_of_the_run_becomes_that_of_the_rollout(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "agent");
    world_beat(world, "e1", "eval", 1, NULL);
    world_reward(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), 0);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_AGENT);
    assert_true(end->end.trainable && end->end.has_reward);
    world_close(world);
}

static void each_end_says_how_many_of_its_group_had_ended(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_submit(world, "g", 3);
    world_beat(world, "i1", "init", 1, NULL);
    world_result(world, "i1", "init:g", expect_job(world, "i1", "init:g"), "ok");
    world_beat(world, "r1", "run", 3, NULL);
    world_beat(world, "e1", "eval", 3, NULL);
    for (int k = 2; k >= 0; k--) {
        char run[16], eval[16], rollout[16];
        snprintf(run, sizeof(run), "run:g/%d", k);
        snprintf(eval, sizeof(eval), "eval:g/%d", k);
        snprintf(rollout, sizeof(rollout), "g/%d", k);
        world_result(world, "r1", run, token_of(world, run), "ok");
        world_reward(world, "e1", eval, token_of(world, eval), 1);
        assert_int_equal(expect_end(world, rollout, OUTCOME_OK)->end.group_ended, 3 - k);
    }
    world_close(world);
}

static void a_shaped_reward_keeps_the_raw_one_and_a_filtered_rollout_is_not_trainable(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    const struct msg_job_result shaped = {.has_reward = true,
                                          .reward = 0.5,
                                          .has_raw_reward = true,
                                          .raw_reward = 1,
                                          .has_filtered = true,
                                          .filtered = true};
    world_result_with(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), "ok", shaped);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_OK);
    assert_true(end->end.has_reward && end->end.reward == 0.5);
    assert_true(end->end.has_raw_reward && end->end.raw_reward == 1);
    assert_false(end->end.trainable);
    world_close(world);
}

static void an_eval_without_a_reward_is_trainable_and_has_none(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    world_result(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), "ok");
    const struct seen *end = expect_end(world, "g/0", OUTCOME_OK);
    assert_true(end->end.trainable);
    assert_false(end->end.has_reward);
    world_close(world);
}

static void a_broken_evaluator_gives_no_reward_whatever_it_says(void **state)
{
    (void)state;
    static const char *const outcomes[] = {"task", "agent"};
    for (size_t i = 0; i < 2; i++) {
        struct world *world = world_open();
        world_reach_eval(world, "g", "ok");
        world_beat(world, "e1", "eval", 1, NULL);
        struct msg_job_result lie = {.reward = 1.0, .has_reward = true, .detail = TEXT("exit 7")};
        world_result_with(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), outcomes[i], lie);
        const struct seen *end = expect_end(world, "g/0", OUTCOME_TASK);
        assert_false(end->end.trainable || end->end.has_reward);
        assert_string_equal(end->end_detail, "exit 7");
        world_close(world);
    }
}

static void a_run_that_left_nothing_known_ends_as_the_agents_without_a_reward_and_is_not_trainable(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "agent");
    world_beat(world, "e1", "eval", 1, NULL);
    struct msg_job_result lie = {.reward = 1.0, .has_reward = true, .detail = TEXT("nothing was scored")};
    world_result_with(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), "agent", lie);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_AGENT);
    assert_false(end->end.trainable || end->end.has_reward);
    assert_non_null(strstr(end->end_detail, "nothing was scored"));
    world_close(world);
}

static void a_reward_of_any_stage_but_eval_is_ignored(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_reward(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), 1.0);
    world_beat(world, "e1", "eval", 1, NULL);
    world_result(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), "ok");
    assert_false(expect_end(world, "g/0", OUTCOME_OK)->end.has_reward);
    world_close(world);
}

static void a_failing_init_ends_every_rollout_of_its_group(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_beat(world, "i1", "init", 1, NULL);
    world_submit(world, "g", 3);
    struct msg_job_result bad = {.detail = TEXT("pip: no such package")};
    world_result_with(world, "i1", "init:g", expect_job(world, "i1", "init:g"), "task", bad);
    assert_int_equal(seen_count(world, PERSIST_END), 3);
    for (size_t k = 0; k < 3; k++) {
        const struct seen *end = seen_nth(world, PERSIST_END, k);
        assert_int_equal(end->end.outcome, OUTCOME_TASK);
        assert_int_equal(end->end.seq, k + 1);
        assert_int_equal(end->end.sample, k);
        assert_int_equal(end->end.attempt, 1);
        assert_int_equal(end->end.init_ms, 35);
        assert_false(end->end.trainable || end->end.has_reward);
        assert_string_equal(end->end_detail, "pip: no such package");
    }
    assert_int_equal(seen_count(world, PERSIST_INIT), 0);
    world_close(world);
}

static void a_run_that_ends_by_the_tasks_fault_keeps_its_record(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    struct msg_job_result run = {.record = TEXT("RECORD"), .detail = TEXT("no image"), .ms = 9};
    world_result_with(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "task", run);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_TASK);
    assert_string_equal(end->record, "RECORD");
    assert_int_equal(end->end.run_ms, 9);
    assert_int_equal(seen_count(world, PERSIST_RUN), 0);
    world_close(world);
}

/* Fails the job until nothing more is handed out; returns how often it was. */
static unsigned fail_until_the_end(struct world *world, const char *worker, const char *job)
{
    unsigned times = 0;
    int64_t back_off_ms = world->settings.retry_first_ms;
    while (seen_nth(world, LANE_JOB, 0)) {
        const struct seen *start = expect(world, LANE_JOB);
        assert_int_equal(start->attempt, ++times);
        struct msg_job_result bad = {.detail = TEXT("HTTP 503"), .record = TEXT("RECORD")};
        world_result_with(world, worker, job, expect_job(world, worker, job), "infra", bad);
        if (seen_nth(world, PERSIST_END, 0))
            break;
        assert_null(seen_nth(world, LANE_JOB, 0));
        world_wait(world, back_off_ms - 1);
        assert_null(seen_nth(world, LANE_JOB, 0));
        world_wait(world, 1);
        back_off_ms *= 2;
        if (back_off_ms > world->settings.retry_last_ms)
            back_off_ms = world->settings.retry_last_ms;
        assert_true(times < 100);
    }
    return times;
}

static void the_runs_and_the_evaluators_words_are_both_there_in_full(void **state)
{
    (void)state;
    struct world *world = world_open();
    char run_words[501], eval_words[901], both[1500];
    memset(run_words, 'r', 500), run_words[500] = '\0';
    memset(eval_words, 'e', 900), eval_words[900] = '\0';
    snprintf(both, sizeof(both), "%s; %s", run_words, eval_words);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_result_with(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "agent",
                      (struct msg_job_result){.detail = TEXT(run_words), .has_detail = true});
    world_beat(world, "e1", "eval", 1, NULL);
    world_result_with(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), "ok",
                      (struct msg_job_result){.detail = TEXT(eval_words), .has_detail = true});
    assert_string_equal(expect_end(world, "g/0", OUTCOME_AGENT)->end_detail, both);
    world_close(world);
}

static void infra_is_tried_again_with_back_off_up_to_its_budget(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 4;
    world->settings.retry_last_ms = 1500;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    assert_int_equal(fail_until_the_end(world, "r1", "run:g/0"), 4);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_INFRA);
    static const char start[] = "HTTP 503\nset aside: 4 of 4 infra outcomes, 0 of 1 task";
    assert_memory_equal(end->end_detail, start, strlen(start));
    assert_string_equal(end->record, "RECORD");
    assert_int_equal(end->end.attempt, 4);
    assert_false(end->end.trainable || end->end.has_reward);
    world_close(world);
}

static void an_init_out_of_budget_ends_its_rollouts_as_infra(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_beat(world, "i1", "init", 1, NULL);
    world_submit(world, "g", 2);
    assert_int_equal(fail_until_the_end(world, "i1", "init:g"), 2);
    assert_int_equal(seen_count(world, PERSIST_END), 2);
    assert_int_equal(expect(world, PERSIST_END)->end.outcome, OUTCOME_INFRA);
    assert_string_equal(expect(world, PERSIST_END)->record, "");
    world_close(world);
}

static void the_budget_starts_anew_with_each_stage(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "infra");
    world_wait(world, 500);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    world_result(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), "infra");
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_wait(world, 500);
    world_reward(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), 1);
    assert_int_equal(expect_end(world, "g/0", OUTCOME_OK)->end.attempt, 2);
    world_close(world);
}

static void fail_by_store(struct world *world, const char *worker, const char *job)
{
    world_result_with(world, worker, job, expect_job(world, worker, job), "infra",
                      (struct msg_job_result){.fault = TEXT("store"), .has_fault = true});
}

/* What the run left has gone: its own fault it is not, and another evaluation cannot mend it. */
static void a_run_whose_layer_cannot_be_read_is_done_again_and_only_once(void **state)
{
    (void)state;
    for (int stays_away = 0; stays_away < 2; stays_away++) {
        struct world *world = world_create();
        world->settings.infra_budget = 2;
        world->settings.beat_timeout_ms = 1000000;
        world_start(world);
        world_reach_run(world, "g", 1);
        world_beat(world, "e1", "eval", 1, NULL);
        world_beat(world, "r1", "run", 1, NULL);
        for (int round = 0; round < 2; round++) {
            world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "ok");
            if (round == 1 && !stays_away)
                break;
            fail_by_store(world, "e1", "eval:g/0");
            world_wait(world, 500);
            fail_by_store(world, "e1", "eval:g/0");
            assert_int_equal(seen_count(world, PERSIST_END), round);
        }
        if (!stays_away)
            world_reward(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), 1);
        const struct seen *end = expect_end(world, "g/0", stays_away ? OUTCOME_INFRA : OUTCOME_OK);
        assert_int_equal(end->end.has_reward, !stays_away);
        assert_int_equal(end->end.trainable, !stays_away);
        world_close(world);
    }
}

static void an_outcome_that_does_not_exist_is_an_infra_fault(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_eval(world, "g", "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    world_reward(world, "e1", "nonsense", 1, 1.0);
    assert_true(was_told(world, "e1", MSG_result_ack, "nonsense"));
    world_beat(world, "e2", "eval", 1, NULL);
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->worker, "e1");
    struct msg_job_result lie = {.reward = 1, .has_reward = true};
    world_result_with(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), "splendid", lie);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_get(world, "g/0");
    assert_string_equal(expect_answer(world, MSG_rollout_state)->state, "delayed");
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submit_is_persisted_and_then_accepted),
        cmocka_unit_test(the_same_group_again_is_known_and_not_persisted_again),
        cmocka_unit_test(a_group_of_the_past_is_known_by_what_the_ledger_says_of_it),
        cmocka_unit_test(another_content_under_the_same_id_is_refused),
        cmocka_unit_test(names_with_slashes_or_blanks_are_refused),
        cmocka_unit_test(a_full_queue_refuses_and_stays_as_it_was),
        cmocka_unit_test(a_task_that_needs_an_engine_is_refused_without_one),
        cmocka_unit_test(a_rollout_goes_through_init_run_and_eval_to_its_reward),
        cmocka_unit_test(queued_time_of_all_stages_is_counted),
        cmocka_unit_test(each_end_says_how_many_of_its_group_had_ended),
        cmocka_unit_test(a_shaped_reward_keeps_the_raw_one_and_a_filtered_rollout_is_not_trainable),
        cmocka_unit_test(the_outcome_of_the_run_becomes_that_of_the_rollout),
        cmocka_unit_test(an_eval_without_a_reward_is_trainable_and_has_none),
        cmocka_unit_test(a_broken_evaluator_gives_no_reward_whatever_it_says),
        cmocka_unit_test(a_run_that_left_nothing_known_ends_as_the_agents_without_a_reward_and_is_not_trainable),
        cmocka_unit_test(a_reward_of_any_stage_but_eval_is_ignored),
        cmocka_unit_test(a_failing_init_ends_every_rollout_of_its_group),
        cmocka_unit_test(a_run_that_ends_by_the_tasks_fault_keeps_its_record),
        cmocka_unit_test(the_runs_and_the_evaluators_words_are_both_there_in_full),
        cmocka_unit_test(infra_is_tried_again_with_back_off_up_to_its_budget),
        cmocka_unit_test(an_init_out_of_budget_ends_its_rollouts_as_infra),
        cmocka_unit_test(the_budget_starts_anew_with_each_stage),
        cmocka_unit_test(a_run_whose_layer_cannot_be_read_is_done_again_and_only_once),
        cmocka_unit_test(an_outcome_that_does_not_exist_is_an_infra_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
