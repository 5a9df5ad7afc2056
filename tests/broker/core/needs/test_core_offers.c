/* What workers' handlers offer, what stages need of them, and who gets what needs something. */
#include "tests/broker/core/core_world.h"

static void offer(struct world *world, const char *worker, const char *stage, uint64_t slots, const char *offers)
{
    world_beat_with(world, worker, stage, (struct beat){.slots = slots, .offers = offers}, NULL);
}

/* A world whose next submits need that of eval workers, and nothing of run workers. */
static struct world *world_of(const char *needs)
{
    struct world *world = world_open();
    world->task.needs[STAGE_EVAL] = TEXT(needs);
    return world;
}

/* Their rollouts wait for their evals; the workers r1 and i1 stay. */
static void reach_eval(struct world *world, const char *group, uint64_t samples)
{
    char job[160];
    world_beat(world, "r1", "run", 64, NULL);
    world_reach_run(world, group, samples);
    for (uint64_t k = 0; k < samples; k++) {
        snprintf(job, sizeof(job), "run:%s/%llu", group, (unsigned long long)k);
        world_result(world, "r1", job, token_of(world, job), "ok");
    }
}

static void expect_why(struct world *world, const char *rollout, const char *words)
{
    world_get(world, rollout);
    const struct seen *now = expect_answer(world, MSG_rollout_state);
    if (!strstr(now->text, words))
        fail_msg("'%s' is not in '%s'", words, now->text);
}

static void expect_status(struct world *world, const char *words)
{
    const char *status = world_status(world);
    if (!strstr(status, words))
        fail_msg("'%s' is not in %s", words, status);
}

static void expect_no_status(struct world *world, const char *words)
{
    const char *status = world_status(world);
    if (strstr(status, words))
        fail_msg("'%s' is in %s", words, status);
}

/* ---- who gets it ------------------------------------------------------------------------------- */

static void a_job_with_needs_goes_to_a_worker_that_offers_all_of_them(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.needs[STAGE_RUN] = TEXT("agent:mine tool:look.up");
    offer(world, "r1", "run", 8, NULL);
    offer(world, "r2", "run", 8, "agent:mine@1");
    offer(world, "r3", "run", 8, "tool:look.up tool:mine agent:look.up");
    offer(world, "r4", "run", 1, "tool:sum@1 tool:look.up@7 agent:mine@2");
    world_reach_run(world, "g", 2);
    assert_int_equal(seen_count(world, LANE_JOB), 1);
    expect_job(world, "r4", "run:g/0");
    world_result(world, "r4", "run:g/0", token_of(world, "run:g/0"), "ok");
    expect_job(world, "r4", "run:g/1");
    world_close(world);
}

static void what_nobody_offers_waits_and_others_pass(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    offer(world, "e1", "eval", 1, "evaluator:other");
    reach_eval(world, "g", 3);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world->task.needs[STAGE_EVAL] = TEXT("");
    reach_eval(world, "h", 1);
    expect_job(world, "e1", "eval:h/0");
    world_reward(world, "e1", "eval:h/0", token_of(world, "eval:h/0"), 1);
    expect_end(world, "h/0", OUTCOME_OK);
    offer(world, "e1", "eval", 2, "evaluator:grade@2");
    assert_int_equal(seen_count(world, LANE_JOB), 2);
    expect_job(world, "e1", "eval:g/0");
    expect_job(world, "e1", "eval:g/1");
    world_reward(world, "e1", "eval:g/0", token_of(world, "eval:g/0"), 1);
    expect_job(world, "e1", "eval:g/2"); /* a slot is free again */
    world_close(world);
}

static void what_a_worker_no_longer_offers_it_is_not_given(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    offer(world, "e1", "eval", 2, "evaluator:grade");
    reach_eval(world, "g", 3);
    offer(world, "e1", "eval", 2, NULL); /* its handler died: jobs in hand end as they do */
    world_blame(world, "e1", "eval:g/0", "infra", "handler", "it died");
    world_wait(world, 1000);
    offer(world, "e1", "eval", 2, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    offer(world, "e2", "eval", 2, "evaluator:grade");
    assert_int_equal(seen_count(world, LANE_JOB), 2);
    world_close(world);
}

static void jobs_without_needs_leave_workers_with_handlers_room(void **state)
{
    (void)state;
    struct world *world = world_open();
    offer(world, "e1", "eval", 8, "evaluator:grade");
    offer(world, "e2", "eval", 2, NULL);
    reach_eval(world, "g", 3);
    expect_job(world, "e1", "eval:g/2"); /* the others were e2's, though it had fewer slots free */
    world->task.needs[STAGE_EVAL] = TEXT("evaluator:grade");
    reach_eval(world, "h", 1);
    expect_job(world, "e1", "eval:h/0");
    world_close(world);
}

static void a_draining_or_full_worker_is_not_given_what_it_offers(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    world_beat_with(world, "e1", "eval", (struct beat){.slots = 4, .offers = "evaluator:grade", .draining = true},
                    NULL);
    offer(world, "e2", "eval", 1, NULL);
    reach_eval(world, "g", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    expect_why(world, "g/0", "none of the 1 eval workers that offer the evaluator grade has a free slot");
    offer(world, "e1", "eval", 4, "evaluator:grade");
    expect_job(world, "e1", "eval:g/0");
    world_close(world);
}

static void those_that_wait_are_let_go_by_turns_of_clients_and_streams_and_by_priority(void **state)
{
    (void)state;
    static const char *const order[] = {"eval:a/0", "eval:b/0", "eval:a2/0", "eval:b/1", "eval:a/1", "eval:b/2"};
    struct world *world = world_of("evaluator:grade");
    offer(world, "e0", "eval", 1, NULL);
    world->name = "alice";
    reach_eval(world, "a", 8);
    world_submit_task(world, "a2", "another", 1, "{}");
    world_result(world, "i1", "init:a2", token_of(world, "init:a2"), "ok");
    world_result(world, "r1", "run:a2/0", token_of(world, "run:a2/0"), "ok");
    world->name = "bob";
    world_submit_task(world, "b", "bobs", 3, "{}");
    world_result(world, "i1", "init:b", token_of(world, "init:b"), "ok");
    for (int k = 0; k < 3; k++) {
        char job[32];
        snprintf(job, sizeof(job), "run:b/%d", k);
        world_result(world, "r1", job, token_of(world, job), "ok");
    }
    world->name = NULL;
    offer(world, "e1", "eval", 1, "evaluator:grade");
    for (size_t i = 0; i < 6; i++) {
        expect_job(world, "e1", order[i]);
        world_reward(world, "e1", order[i], token_of(world, order[i]), 1);
    }
    world_close(world);
}

static void a_higher_priority_that_waits_goes_first(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    offer(world, "e0", "eval", 1, NULL);
    reach_eval(world, "low", 4);
    world->priority = 9;
    reach_eval(world, "high", 1);
    offer(world, "e1", "eval", 1, "evaluator:grade");
    expect_job(world, "e1", "eval:high/0");
    world_close(world);
}

static void a_suspect_runs_alone_on_a_worker_that_offers_what_it_needs(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    reach_eval(world, "g", 1);
    offer(world, "e1", "eval", 1, "evaluator:grade");
    world_break_lane(world, "e1");
    offer(world, "e2", "eval", 1, "evaluator:grade");
    world_break_lane(world, "e2");
    offer(world, "e3", "eval", 4, NULL); /* idle, and of no use to it */
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    expect_why(world, "g/0", "it waits for the evaluator grade");
    offer(world, "e4", "eval", 4, "evaluator:grade");
    expect_job(world, "e4", "eval:g/0");
    world_close(world);
}

/* ---- failures, cancels, restarts ----------------------------------------------------------------- */

static void what_failed_by_a_handler_goes_to_another_worker_if_there_is_one(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    offer(world, "e1", "eval", 4, "evaluator:grade");
    reach_eval(world, "g", 1);
    offer(world, "e2", "eval", 1, "evaluator:grade");
    offer(world, "e3", "eval", 8, NULL);
    world_blame(world, "e1", "eval:g/0", "infra", "handler", "it died");
    world_wait(world, 1000);
    expect_job(world, "e2", "eval:g/0"); /* e1 has more slots free */
    world_blame(world, "e2", "eval:g/0", "infra", "node", "no memory");
    offer(world, "e2", "eval", 1, "evaluator:grade");
    world_wait(world, 2000);
    expect_job(world, "e1", "eval:g/0");
    world_close(world);
}

static void handlers_use_up_the_budget_and_the_engine_is_not_avoided(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world_start(world);
    world_settle(world);
    world->task.needs[STAGE_EVAL] = TEXT("evaluator:grade");
    offer(world, "e1", "eval", 4, "evaluator:grade");
    reach_eval(world, "g", 1);
    world_blame(world, "e1", "eval:g/0", "infra", "handler", "it died");
    world_wait(world, 1000);
    expect_job(world, "e1", "eval:g/0"); /* there is no other */
    world_blame(world, "e1", "eval:g/0", "infra", "handler", "it died again");
    assert_non_null(strstr(expect_end(world, "g/0", OUTCOME_INFRA)->end_detail, "infra on e1, handler: it died"));
    world_close(world);
}

static void what_waits_is_cancelled_and_over_as_anything_else(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    world->task.total_ms = 60000;
    offer(world, "e1", "eval", 1, NULL);
    reach_eval(world, "g", 2);
    world_cancel(world, "g/0", NULL, NULL);
    expect_end(world, "g/0", OUTCOME_CANCELLED);
    offer(world, "e1", "eval", 1, NULL);
    offer(world, "i1", "init", 1, NULL);
    world_wait(world, 70000);
    assert_non_null(strstr(expect_end(world, "g/1", OUTCOME_INFRA)->end_detail,
                           "its eval job was waiting for a worker that offers what it needs"));
    expect_status(world, "\"needs\":[]");
    world_close(world);
}

static void after_a_restart_it_waits_for_the_same(void **state)
{
    (void)state;
    struct world *world = world_create();
    world_start(world);
    struct core_group_row group = {
        .group = TEXT("g"), .stream = TEXT("train"), .samples = 1, .task = world->task, .init_done = true};
    group.task.needs[STAGE_EVAL] = TEXT("evaluator:grade");
    group.task.reads_record = true;
    assert_true(core_restore_group(world->core, &group));
    struct core_rollout_row row = {.rollout = TEXT("g/0"), .group = TEXT("g"), .run_done = true};
    assert_true(core_restore_rollout(world->core, &row));
    world_settle(world);
    offer(world, "e1", "eval", 4, NULL);
    world_wait(world, 20000);
    offer(world, "e1", "eval", 4, NULL);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    offer(world, "e2", "eval", 4, "evaluator:grade");
    expect_job(world, "e2", "eval:g/0");
    assert_true(expect(world, LANE_JOB)->reads_record);
    world_close(world);
}

static void an_eval_is_sent_with_the_record_only_where_its_evaluator_reads_it(void **state)
{
    (void)state;
    struct world *world = world_open();
    offer(world, "e1", "eval", 8, NULL);
    reach_eval(world, "g", 1);
    assert_false(expect(world, LANE_JOB)->reads_record);
    world->task.reads_record = true;
    reach_eval(world, "h", 1);
    expect_job(world, "e1", "eval:h/0");
    assert_true(expect(world, LANE_JOB)->reads_record);
    world_close(world);
}

/* ---- what is said of it -------------------------------------------------------------------------- */

static void a_submit_says_what_its_rollouts_will_wait_for(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    world_submit(world, "a", 1);
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text,
                        "its rollouts will wait for the evaluator grade, which no eval worker offers: start one with "
                        "--handler");
    offer(world, "e1", "eval", 1, "evaluator:graded");
    world_submit(world, "a", 1); /* known */
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text,
                        "its rollouts will wait for the evaluator grade, which no eval worker offers: start one with "
                        "--handler; did you mean 'graded'?");
    world->task.needs[STAGE_EVAL] = TEXT("evaluator:comand");
    world_submit(world, "b", 1);
    assert_non_null(strstr(expect_answer(world, MSG_group_accepted)->text, "; did you mean 'command'?"));
    world->task.needs[STAGE_EVAL] = TEXT("evaluator:graded");
    world_submit(world, "c", 1);
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text, "");
    world->task.needs[STAGE_RUN] = TEXT("agent:mine tool:sum");
    world_submit(world, "d", 1);
    assert_non_null(strstr(expect_answer(world, MSG_group_accepted)->text,
                           "the agent mine and the tool sum, which no run worker offers"));
    offer(world, "r1", "run", 1, "agent:mine");
    offer(world, "r2", "run", 1, "tool:sum");
    world_submit(world, "e", 1);
    assert_non_null(strstr(expect_answer(world, MSG_group_accepted)->text,
                           "the agent mine and the tool sum, which no one run worker offers together"));
    world_close(world);
}

static void the_status_says_what_waits_for_what_and_who_offers_it(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    offer(world, "e1", "eval", 2, "evaluator:graded@3");
    reach_eval(world, "g", 3);
    expect_status(world, "\"3 rollouts wait for the evaluator grade, which no eval worker offers: start one with "
                         "--handler; did you mean 'graded'?\"");
    expect_status(world, "\"3 rollouts wait for what no worker's handlers offer\"");
    expect_status(world, "\"health\":\"degraded\"");
    expect_status(world, "\"offers\":\"evaluator:graded@3\"");
    expect_status(world, "\"needs\":[{\"needs\":\"evaluator:grade\",\"stage\":\"eval\",\"groups\":1,\"waiting\":3,"
                         "\"workers\":0,\"free\":0}]");
    expect_status(world, "\"no_offer\":3");
    expect_why(world, "g/2", "it waits for the evaluator grade, which no eval worker offers");
    offer(world, "e2", "eval", 2, "evaluator:grade");
    expect_status(world, "\"waiting\":1,\"workers\":1,\"free\":0}]");
    expect_no_status(world, "which no eval worker offers");
    expect_why(world, "g/2", "none of the 1 eval workers that offer the evaluator grade has a free slot");
    world_close(world);
}

static void it_is_said_of_what_is_queued_too(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:grade");
    reach_eval(world, "g", 1);
    expect_status(world, "1 rollout waits for the evaluator grade, which no eval worker offers");
    offer(world, "e1", "eval", 1, NULL);
    expect_why(world, "g/0", "it waits for the evaluator grade");
    world_close(world);
}

/* ---- offers that are none ------------------------------------------------------------------------ */

static void what_is_no_offer_is_named_and_the_rest_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *offer, *words;
    } bad[] = {
        {"grade", "grade: an offer is agent, tool, evaluator or hook, a ':', a name, '@' and a version"},
        {"judge:x@1", "judge:x@1: an offer is"},
        {"evaluator:", "evaluator:: a name is 1 to 64 letters"},
        {"evaluator:@1", "evaluator:@1: a name is"},
        {"evaluator:9x", "evaluator:9x: a name is"},
        {"evaluator:a/b@1", "evaluator:a/b@1: a name is"},
        {"x@evaluator:y", "x@evaluator:y: an offer is"},
        {"agent:mine@1",
         "agent:mine@1: run workers offer agents, tools, evaluators and hooks, and eval workers evaluators"},
    };
    struct world *world = world_of("evaluator:grade");
    reach_eval(world, "g", sizeof(bad) / sizeof(*bad));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[256], worker[16];
        snprintf(text, sizeof(text), "%s evaluator:grade@1", bad[i].offer);
        snprintf(worker, sizeof(worker), "e%zu", i);
        offer(world, worker, "eval", 1, text);
        assert_int_equal(seen_count(world, LANE_JOB), 1);
        expect_status(world, bad[i].words);
    }
    expect_status(world, "8 workers offer what is not taken, e0 on node7 among them: grade: an offer is");
    world_close(world);
}

static void of_too_many_names_the_first_count(void **state)
{
    (void)state;
    struct world *world = world_of("evaluator:e63");
    char text[1024] = "";
    for (unsigned i = 0; i < 70; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "evaluator:e%u ", i);
    offer(world, "e1", "eval", 4, text);
    expect_status(world, "\"offers_error\":\"evaluator:e64: a worker offers at most 64 names\"");
    reach_eval(world, "g", 1);
    expect_job(world, "e1", "eval:g/0");
    world->task.needs[STAGE_EVAL] = TEXT("evaluator:e64");
    reach_eval(world, "h", 1);
    assert_int_equal(seen_count(world, LANE_JOB), 0);
    world_close(world);
}

static void an_init_worker_offers_nothing(void **state)
{
    (void)state;
    struct world *world = world_open();
    offer(world, "i1", "init", 1, "tool:sum@1");
    expect_status(world, "\"offers_error\":\"tool:sum@1: run workers offer agents, tools, evaluators and hooks");
    world_close(world);
}

static void more_sets_of_needs_than_fit_are_refused(void **state)
{
    (void)state;
    struct world *world = world_open();
    char needs[64], group[16];
    world->task.needs[STAGE_EVAL] = TEXT("evaluator:grade");
    for (unsigned i = 0; i < 1023; i++) {
        snprintf(needs, sizeof(needs), "agent:a%u", i);
        snprintf(group, sizeof(group), "g%u", i);
        world->task.needs[STAGE_RUN] = TEXT(needs);
        core_handle(world->core, world->now_ms, WALL_MS, &(struct caller){.route = TEXT("t"), .is_admin = true},
                    MSG_group_submit,
                    &(struct msg_group_submit){
                        .tag = 1, .group = TEXT(group), .stream = TEXT("train"), .samples = 1, .task = TEXT("{}")},
                    &world->task, 1);
        core_effects_clear(world->core);
    }
    world_submit(world, "known", 1);
    expect_answer(world, MSG_group_accepted);
    world->task.needs[STAGE_RUN] = TEXT("agent:new");
    world_submit(world, "new", 1);
    assert_non_null(strstr(expect_refused(world, REFUSAL_QUEUE_FULL)->text, "live groups need 1024 different sets"));
    world_cancel(world, NULL, "g7", NULL);
    world_submit(world, "new", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_with_needs_goes_to_a_worker_that_offers_all_of_them),
        cmocka_unit_test(what_nobody_offers_waits_and_others_pass),
        cmocka_unit_test(what_a_worker_no_longer_offers_it_is_not_given),
        cmocka_unit_test(jobs_without_needs_leave_workers_with_handlers_room),
        cmocka_unit_test(a_draining_or_full_worker_is_not_given_what_it_offers),
        cmocka_unit_test(those_that_wait_are_let_go_by_turns_of_clients_and_streams_and_by_priority),
        cmocka_unit_test(a_higher_priority_that_waits_goes_first),
        cmocka_unit_test(a_suspect_runs_alone_on_a_worker_that_offers_what_it_needs),
        cmocka_unit_test(what_failed_by_a_handler_goes_to_another_worker_if_there_is_one),
        cmocka_unit_test(handlers_use_up_the_budget_and_the_engine_is_not_avoided),
        cmocka_unit_test(what_waits_is_cancelled_and_over_as_anything_else),
        cmocka_unit_test(after_a_restart_it_waits_for_the_same),
        cmocka_unit_test(an_eval_is_sent_with_the_record_only_where_its_evaluator_reads_it),
        cmocka_unit_test(a_submit_says_what_its_rollouts_will_wait_for),
        cmocka_unit_test(the_status_says_what_waits_for_what_and_who_offers_it),
        cmocka_unit_test(it_is_said_of_what_is_queued_too),
        cmocka_unit_test(what_is_no_offer_is_named_and_the_rest_is_kept),
        cmocka_unit_test(of_too_many_names_the_first_count),
        cmocka_unit_test(an_init_worker_offers_nothing),
        cmocka_unit_test(more_sets_of_needs_than_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
