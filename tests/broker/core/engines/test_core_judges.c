/* Evaluations that a model judges: which engines they are given, what they wait for, and who is blamed. */
#include "tests/broker/core/core_world.h"

static const char actor[] = "http://actor:8000", one[] = "http://judge1:8000", two[] = "http://judge2:8000";

static void add(struct world *world, const char *url, const char *policy, uint64_t runs_max)
{
    struct msg_engine_add in = {.tag = 12,
                                .url = TEXT(url),
                                .policy = TEXT(policy),
                                .has_policy = policy != NULL,
                                .runs_max = runs_max,
                                .has_runs_max = runs_max > 0};
    world_say(world, "operator", MSG_engine_add, &in);
}

/* Tasks that engines of `judge` judge; a run worker, an eval worker that calls engines, an engine for the runs. */
static struct world *open_judged(void)
{
    struct world *world = world_create();
    world->settings.beat_timeout_ms = world->settings.hold_grace_ms = 100000000;
    world->settings.retry_first_ms = world->settings.retry_last_ms = 1;
    world->settings.engine_probe_interval_ms = 0;
    world->task.needs_engine = true;
    world->task.judge = TEXT("judge");
    world_start(world);
    world_settle(world);
    world_beat_with(world, "r1", "run", (struct beat){.slots = 8, .engines = 1}, NULL);
    world_beat_with(world, "e1", "eval", (struct beat){.slots = 8, .engines = 1}, NULL);
    add(world, actor, NULL, 0);
    return world;
}

/* A group's runs have ended; its evaluations are queued, handed out or blocked. */
static void reach_evals(struct world *world, const char *group, unsigned samples)
{
    char job[64];
    world_reach_run(world, group, samples);
    for (unsigned k = 0; k < samples; k++) {
        snprintf(job, sizeof(job), "run:%s/%u", group, k);
        world_result(world, "r1", job, token_of(world, job), "ok");
    }
}

/* The engine that the job was given just now; NULL: it was not handed out. */
static const char *engine_of(const struct world *world, const char *job)
{
    for (size_t i = 0; i < world->seen_count; i++)
        if (world->seen[i].kind == LANE_JOB && !strcmp(world->seen[i].job, job))
            return world->seen[i].engine;
    return NULL;
}

static bool status_says(struct world *world, const char *words) { return strstr(world_status(world), words) != NULL; }

static void an_evaluation_is_given_an_engine_of_the_judges_policy(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 0);
    reach_evals(world, "g", 1);
    assert_string_equal(engine_of(world, "eval:g/0"), one);
    world_reward(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), 0.5);
    const struct seen *end = expect_end(world, "g/0", OUTCOME_OK);
    assert_string_equal(end->end_engine, actor); /* the trajectory names who sampled it */
    world_close(world);
}

static void a_task_that_no_model_judges_is_given_none(void **state)
{
    (void)state;
    struct world *world = open_judged();
    world->task.judge = TEXT(NULL);
    add(world, one, "judge", 0);
    reach_evals(world, "g", 1);
    assert_string_equal(engine_of(world, "eval:g/0"), "");
    world_close(world);
}

static void without_judges_evaluations_wait_and_all_say_for_what(void **state)
{
    (void)state;
    struct world *world = open_judged();
    world_beat(world, "i1", "init", 8, NULL);
    world_submit(world, "g", 1);
    const struct seen *accepted = expect_answer(world, MSG_group_accepted);
    assert_non_null(strstr(accepted->text, "its rollouts will wait for an engine of the policy judge: "
                                           "sluice engine add URL --policy judge"));
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok");
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "ok");
    assert_null(engine_of(world, "eval:g/0"));
    assert_true(status_says(world, "evaluations need an engine of the policy judge and none is registered: "
                                   "sluice engine add URL --policy judge"));
    world_get(world, "g/0");
    assert_non_null(strstr(expect(world, SEND_CLIENT)->text, "no engine is registered for the policy judge: "
                                                             "sluice engine add URL --policy judge"));
    add(world, one, "judge", 0);
    assert_string_equal(engine_of(world, "eval:g/0"), one);
    assert_false(status_says(world, "evaluations need an engine"));
    world_close(world);
}

static void full_judges_hold_back_no_other_evaluation(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 1);
    reach_evals(world, "g", 2);
    assert_null(engine_of(world, "eval:g/1"));
    world->task.judge = TEXT(NULL);
    reach_evals(world, "plain", 1);
    assert_string_equal(engine_of(world, "eval:plain/0"), "");
    world_reward(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), 1);
    assert_string_equal(engine_of(world, "eval:g/1"), one);
    world_close(world);
}

static void a_judge_that_fails_is_the_engines_fault_and_another_is_asked(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 0);
    add(world, two, "judge", 0);
    reach_evals(world, "g", 1);
    char first[300];
    snprintf(first, sizeof(first), "%s", engine_of(world, "eval:g/0"));
    world_blame(world, "e1", "eval:g/0", "infra", "engine", "connection refused");
    world_wait(world, 100);
    assert_non_null(engine_of(world, "eval:g/0"));
    assert_string_not_equal(engine_of(world, "eval:g/0"), first);
    assert_string_equal(engine_of(world, "eval:g/0"), strcmp(first, one) ? one : two);
    world_close(world);
}

/* Three faults in a row set an engine aside, and so many rollouts of a group wait for their judge. */
static struct world *open_strict(unsigned rollouts)
{
    struct world *world = open_judged();
    world->settings.breaker_faults = 3;
    world->settings.breaker_first_ms = 1000;
    core_destroy(&world->core);
    world_start(world);
    world_settle(world);
    world_beat_with(world, "r1", "run", (struct beat){.slots = 8, .engines = 1}, NULL);
    world_beat_with(world, "e1", "eval", (struct beat){.slots = 8, .engines = 1}, NULL);
    add(world, actor, NULL, 0);
    add(world, one, "judge", 0);
    reach_evals(world, "g", rollouts);
    return world;
}

static void judges_that_fail_in_a_row_are_set_aside_and_cost_no_rollout(void **state)
{
    (void)state;
    struct world *world = open_strict(6);
    char job[32];
    for (unsigned k = 0; k < 6; k++) {
        snprintf(job, sizeof(job), "eval:g/%u", k);
        world_blame(world, "e1", job, "infra", "engine", "connection refused");
    }
    world_wait(world, 500);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    assert_true(status_says(world, "1 of 2 engines are set aside after faults in a row"));
    world_wait(world, 600); /* exactly one tries it */
    world_wait(world, 1);
    size_t tried = 0;
    for (unsigned k = 0; k < 6; k++) {
        snprintf(job, sizeof(job), "eval:g/%u", k);
        if (world->seen_count && engine_of(world, job))
            tried++;
    }
    assert_true(tried <= 1);
    assert_int_equal(seen_count(world, PERSIST_END), 0);
    world_close(world);
}

static void an_eval_worker_is_told_of_pauses_and_a_pause_waits_for_it(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 0);
    reach_evals(world, "g", 1);
    struct msg_policy_pause pause = {
        .tag = 9, .calls = TEXT("finish"), .bound_ms = 60000, .engine = TEXT(one), .has_engine = true};
    world_say(world, "operator", MSG_policy_pause, &pause);
    assert_true(was_told(world, "e1", MSG_lane_engine, NULL) && was_told(world, "r1", MSG_lane_engine, NULL));
    assert_int_equal(expect_answer(world, MSG_done)->count, 2);
    world_close(world);
}

static void an_eval_worker_that_says_nothing_of_engines_is_told_nothing(void **state)
{
    (void)state;
    struct world *world = open_judged();
    world_beat(world, "old", "eval", 8, NULL);
    add(world, one, "judge", 0);
    struct msg_policy_pause pause = {.tag = 9, .calls = TEXT("finish"), .bound_ms = 60000};
    world_say(world, "operator", MSG_policy_pause, &pause);
    assert_false(was_told(world, "old", MSG_lane_engine, NULL));
    assert_true(was_told(world, "e1", MSG_lane_engine, NULL));
    world_close(world);
}

static void what_an_eval_worker_holds_on_an_engine_is_counted(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 0);
    struct msg_engine_load in = {.worker = TEXT("e1"), .url = TEXT(one), .runs = 2, .tokens = 4321, .calls = 1};
    world_say(world, "", MSG_engine_load, &in);
    assert_true(status_says(world, "\"tokens\":4321"));
    world_close(world);
}

static void judges_of_groups_are_no_reason_to_refuse_another_model_there(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 0);
    reach_evals(world, "g", 1);
    for (unsigned i = 0; i < 2; i++) {
        struct msg_engine_load in = {.worker = TEXT("r1"),
                                     .url = TEXT(one),
                                     .tokenizer_digest = TEXT(i ? "t2" : "t1"),
                                     .has_tokenizer_digest = true,
                                     .template_digest = TEXT("chatml"),
                                     .has_template_digest = true};
        world_say(world, "", MSG_engine_load, &in);
    }
    assert_false(status_says(world, "\"state\":\"other\""));
    world_close(world);
}

static void a_policy_lives_as_long_as_a_group_is_judged_by_it(void **state)
{
    (void)state;
    struct world *world = open_judged();
    add(world, one, "judge", 0);
    reach_evals(world, "g", 1);
    world_engine(world, MSG_engine_remove, one);
    world_reward(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), 1);
    expect_end(world, "g/0", OUTCOME_OK);
    world_close(world); /* core_check was content throughout */
}

/* ---- a teacher is a judge that gives a record in place of a reward -------------------------------- */

static void teach(struct world *world, const char *job)
{
    world_result_with(world, "e1", job, token_of(world, job), "ok",
                      (struct msg_job_result){.record = TEXT("scored"), .has_record = true});
}

static void what_a_teacher_says_takes_the_place_of_the_runs_record(void **state)
{
    (void)state;
    struct world *world = open_judged();
    world->task.reads_record = true;
    add(world, one, "judge", 0);
    reach_evals(world, "g", 2);
    assert_true(expect(world, LANE_JOB)->reads_record);
    teach(world, "eval:g/0");
    const struct seen *end = expect_end(world, "g/0", OUTCOME_OK);
    assert_string_equal(end->record, "scored");
    assert_true(end->end.trainable && !end->end.has_reward);
    world_reward(world, "e1", "eval:g/1", token_of(world, "eval:g/1"), 1);
    assert_string_equal(expect_end(world, "g/1", OUTCOME_OK)->record, ""); /* the run's stays */
    world_close(world);
}

static void a_teacher_works_though_it_gives_no_reward(void **state)
{
    (void)state;
    struct world *world = open_strict(5);
    for (unsigned k = 0; k < 5; k++) { /* two faults, none, two faults */
        char job[32];
        snprintf(job, sizeof(job), "eval:g/%u", k);
        if (k == 2)
            teach(world, job);
        else
            world_blame(world, "e1", job, "infra", "engine", "connection refused");
    }
    assert_false(status_says(world, "set aside after faults in a row"));
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_evaluation_is_given_an_engine_of_the_judges_policy),
        cmocka_unit_test(a_task_that_no_model_judges_is_given_none),
        cmocka_unit_test(without_judges_evaluations_wait_and_all_say_for_what),
        cmocka_unit_test(full_judges_hold_back_no_other_evaluation),
        cmocka_unit_test(a_judge_that_fails_is_the_engines_fault_and_another_is_asked),
        cmocka_unit_test(judges_that_fail_in_a_row_are_set_aside_and_cost_no_rollout),
        cmocka_unit_test(an_eval_worker_is_told_of_pauses_and_a_pause_waits_for_it),
        cmocka_unit_test(an_eval_worker_that_says_nothing_of_engines_is_told_nothing),
        cmocka_unit_test(what_an_eval_worker_holds_on_an_engine_is_counted),
        cmocka_unit_test(judges_of_groups_are_no_reason_to_refuse_another_model_there),
        cmocka_unit_test(a_policy_lives_as_long_as_a_group_is_judged_by_it),
        cmocka_unit_test(what_a_teacher_says_takes_the_place_of_the_runs_record),
        cmocka_unit_test(a_teacher_works_though_it_gives_no_reward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
