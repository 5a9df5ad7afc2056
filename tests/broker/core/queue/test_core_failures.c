/* Budgets, back-offs and histories: what is borne of a job, on disk and off. */
#include "tests/broker/core/core_world.h"

#include "common/base/utf8.h"

/* The broker is started again with these groups: h has had its init, g has not. */
static struct world *restart(const struct core_failures *failures)
{
    struct world *world = world_create();
    world->settings.infra_budget = 3;
    world->epoch = 4;
    world_start(world);
    core_restore_clock(world->core, WALL_MS);
    for (unsigned i = 0; i < 2; i++) {
        struct core_group_row group = {
            .group = TEXT(i ? "h" : "g"), .stream = TEXT("train"), .samples = 1, .task = world->task, .init_done = i};
        struct core_rollout_row row = {.rollout = TEXT(i ? "h/0" : "g/0"), .group = group.group};
        assert_true(core_restore_group(world->core, &group));
        assert_true(core_restore_rollout(world->core, &row));
    }
    assert_true(core_restore_failures(world->core, failures));
    assert_int_equal(core_effects(world->core).count, 1); /* the epoch's */
    world_settle(world);
    world_wait(world, 3000);
    return world;
}

static void a_task_outcome_is_tried_again_up_to_its_budget(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.task_budget = 3;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_eval(world, "g", "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    static const char *const outcomes[] = {"task", "agent", "task"};
    for (unsigned i = 0; i < 3; i++) {
        uint64_t token = expect_job(world, "e1", "eval:g/0");
        world_result_with(world, "e1", "eval:g/0", token, outcomes[i],
                          (struct msg_job_result){.detail = TEXT("exit 127")});
        if (i == 2)
            break;
        assert_int_equal(expect(world, PERSIST_FAILURES)->failures.faults, i + 1);
        world_wait(world, 500 * (int64_t)(i + 1) - 1);
        assert_null(seen_nth(world, LANE_JOB, 0)); /* its back-off */
        world_wait(world, 1);
    }
    const struct seen *end = expect_end(world, "g/0", OUTCOME_TASK);
    assert_non_null(strstr(end->end_detail, "exit 127\nset aside: 0 of 8 infra outcomes, 3 of 3 "
                                            "task outcomes, 0 of 3 workers lost"));
    assert_non_null(strstr(end->end_detail, "\n+1 s task on e1: exit 127"));
    world_close(world);
}

static void infra_and_task_outcomes_do_not_share_a_budget(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.task_budget = world->settings.infra_budget = 2;
    world->settings.beat_timeout_ms = 1000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "infra");
    world_wait(world, 500);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "task");
    assert_null(seen_nth(world, PERSIST_END, 0));
    world_wait(world, 500);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "infra");
    expect_end(world, "g/0", OUTCOME_INFRA);
    world_close(world);
}

static void one_task_outcome_counts_once_however_often_it_comes(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.task_budget = 2;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:g/0");
    world_result(world, "r1", "run:g/0", token, "task");
    assert_non_null(seen_nth(world, PERSIST_FAILURES, 0));
    for (unsigned again = 0; again < 3; again++) {
        world_result(world, "r1", "run:g/0", token, "task"); /* its acknowledgement was lost */
        assert_null(seen_nth(world, PERSIST_FAILURES, 0));
        assert_null(seen_nth(world, PERSIST_END, 0));
        world_wait(world, 500);
    }
    world_close(world);
}

static void every_change_of_a_jobs_counts_goes_to_disk(void **state)
{
    (void)state;
    struct world *world = world_open();
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    expect_job(world, "r1", "run:g/0");
    world_blame(world, "r1", "run:g/0", "infra", "node", "no space left");
    const struct seen *row = expect(world, PERSIST_FAILURES);
    assert_string_equal(row->failures_job, "run:g/0");
    assert_string_equal(row->history, "+0 s infra on r1, node: no space left");
    assert_int_equal(row->failures.infras, 1);
    assert_int_equal(row->failures.attempt, 1);
    world_wait(world, 500);
    for (unsigned death = 1; death <= 3; death++) {
        expect_job(world, "r1", "run:g/0");
        world_break_lane(world, "r1");
        row = expect(world, PERSIST_FAILURES);
        assert_int_equal(row->failures.deaths, death);
        assert_int_equal(row->failures.blames, death == 3);
        assert_int_equal(row->failures.infras, 1);
        assert_int_equal(row->failures.attempt, 1 + death);
        assert_true(death < 3 || strstr(row->history, "alone: r1"));
        world_beat(world, "r1", "run", 1, NULL);
    }
    world_result(world, "r1", "run:g/0", token_of(world, "run:g/0"), "cancelled");
    assert_null(seen_nth(world, PERSIST_FAILURES, 0)); /* given back: nobody's fault */
    world_close(world);
}

static void budgets_outlive_the_broker(void **state)
{
    (void)state;
    struct world *world = restart(
        &(struct core_failures){.job = TEXT("run:h/0"),
                                .attempt = 5,
                                .infras = 2,
                                .deaths = 1,
                                .history = TEXT("+0 s infra on r1: first\n+4 s infra on r1: second")});
    world_beat(world, "r1", "run", 1, NULL);
    expect_job(world, "r1", "run:h/0");
    assert_int_equal(expect(world, LANE_JOB)->attempt, 6);
    world_blame(world, "r1", "run:h/0", "infra", NULL, "third");
    const struct seen *end = expect_end(world, "h/0", OUTCOME_INFRA);
    assert_non_null(strstr(end->end_detail, "third\nset aside: 3 of 3 infra outcomes"));
    assert_non_null(strstr(end->end_detail, "\n+0 s infra on r1: first\n+4 s infra on r1: second\n"
                                            "the broker was started again"));
    world_close(world);
}

/* It may go missing 3 times; each further time is an infra outcome. */
static void what_went_missing_is_on_disk_and_counted_after_a_restart(void **state)
{
    (void)state;
    struct world *world = restart(&(struct core_failures){.job = TEXT("run:h/0"), .missing = 2});
    world_beat(world, "r1", "run", 1, NULL);
    uint64_t token = expect_job(world, "r1", "run:h/0");
    for (unsigned missing = 3; missing <= 4; missing++) {
        world_wait(world, 2001);
        world_beat(world, "r1", "run", 1, NULL);
        const struct seen *row = expect(world, PERSIST_FAILURES);
        assert_int_equal(row->failures.missing, missing);
        assert_int_equal(row->failures.infras, missing - 3);
        assert_true(row->failures.fenced_up_to == token);
        if (missing == 3)
            token = expect_job(world, "r1", "run:h/0"); /* at once; an infra outcome has its back-off */
    }
    world_close(world);
}

/* The broker was killed once the failure was on disk and before it was acknowledged. */
static void a_failure_that_is_sent_again_after_a_restart_counts_once(void **state)
{
    (void)state;
    const uint64_t failed = (3ull << 32) + 7;
    static const char *const outcomes[] = {"infra", "task", "cancelled"};
    for (unsigned i = 0; i < 3; i++) {
        struct world *world = world_create();
        world->settings.task_budget = 2;
        world->epoch = 4;
        world_start(world);
        struct core_group_row group = {
            .group = TEXT("h"), .stream = TEXT("train"), .samples = 1, .task = world->task, .init_done = true};
        struct core_rollout_row row = {.rollout = TEXT("h/0"), .group = TEXT("h")};
        assert_true(core_restore_group(world->core, &group));
        assert_true(core_restore_rollout(world->core, &row));
        assert_true(core_restore_failures(
            world->core,
            &(struct core_failures){
                .job = TEXT("run:h/0"), .attempt = 1, .infras = 1, .history = TEXT("x"), .fenced_up_to = failed}));
        world_settle(world);
        world_beat(world, "r1", "run", 1, "run:h/0", failed, NULL); /* its result is still kept */
        assert_true(was_told(world, "r1", MSG_job_cancel, "run:h/0"));
        world_result(world, "r1", "run:h/0", failed, outcomes[i]);
        assert_true(was_told(world, "r1", MSG_result_ack, "run:h/0"));
        assert_null(seen_nth(world, PERSIST_FAILURES, 0));
        world_get(world, "h/0");
        assert_string_equal(expect_answer(world, MSG_rollout_state)->worker, "");
        world_wait(world, 3000);
        uint64_t token = expect_job(world, "r1", "run:h/0");
        assert_true(token > failed);
        world_result(world, "r1", "run:h/0", token, "infra"); /* another failure is another */
        assert_int_equal(expect(world, PERSIST_FAILURES)->failures.infras, 2);
        assert_true(expect(world, PERSIST_FAILURES)->failures.fenced_up_to == token);
        world_close(world);
    }
}

static void a_suspect_is_one_after_a_restart_too(void **state)
{
    (void)state;
    struct world *world = restart(&(struct core_failures){.job = TEXT("init:g"), .deaths = 2});
    world_submit(world, "later", 1);
    world_beat(world, "i1", "init", 4, NULL);
    expect_job(world, "i1", "init:g");
    assert_int_equal(seen_count(world, LANE_JOB), 1); /* alone */
    world_close(world);
}

static void failures_of_another_stage_or_of_nobody_are_not_restored(void **state)
{
    (void)state;
    static const char *const jobs[] = {"eval:h/0", "init:h", "run:g/0", "run:x/0", "nonsense", ""};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
        struct world *world = restart(&(struct core_failures){.job = TEXT(jobs[i]), .infras = 2});
        world_beat(world, "r1", "run", 1, NULL);
        expect_job(world, "r1", "run:h/0");
        world_result(world, "r1", "run:h/0", token_of(world, "run:h/0"), "infra");
        assert_int_equal(expect(world, PERSIST_FAILURES)->failures.infras, 1);
        world_close(world);
    }
}

static void whatever_the_disk_says_stays_within_bounds(void **state)
{
    (void)state;
    char junk[20000];
    memset(junk, 'x', sizeof(junk));
    junk[10000] = '\n';
    struct core_failures failures = {.job = TEXT("run:h/0"),
                                     .attempt = UINT64_MAX,
                                     .infras = 1,
                                     .faults = 0,
                                     .deaths = UINT64_MAX,
                                     .missing = UINT64_MAX,
                                     .fenced_up_to = UINT64_MAX,
                                     .history = slice_of(junk, sizeof(junk))};
    struct world *world = restart(&failures);
    world_beat(world, "r1", "run", 1, NULL);
    expect_job(world, "r1", "run:h/0");
    world_result(world, "r1", "run:h/0", token_of(world, "run:h/0"), "infra");
    assert_true(strlen(expect(world, PERSIST_FAILURES)->history) <= 1024);
    assert_int_equal(expect(world, PERSIST_FAILURES)->failures.infras, 2);
    world_close(world);
}

static void a_history_keeps_its_beginning_and_its_end_and_is_bounded(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 60;
    world->settings.beat_timeout_ms = 100000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    char detail[400];
    for (unsigned i = 1; i <= 60; i++) {
        int len = snprintf(detail, sizeof(detail), "fault %u of\n\"%s\" ", i, i % 2 ? "a" : "ab");
        while (len < 300)
            len += snprintf(detail + len, sizeof(detail) - (size_t)len, "\xe2\x82\xac");
        world_blame(world, "r1", "run:g/0", "infra", NULL, detail);
        const struct seen *row = seen_nth(world, PERSIST_FAILURES, 0);
        assert_int_equal(row == NULL, i == 60);
        if (row) {
            assert_true(strlen(row->history) <= 1024);
            assert_true(utf8_is_valid(TEXT(row->history)));
            assert_int_equal(row->failures.infras, i);
        }
        world_wait(world, 30000);
    }
    world_close(world);
}

static void a_set_aside_rollout_tells_its_first_and_its_last_failures(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 20;
    world->settings.beat_timeout_ms = 100000000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    for (unsigned i = 1; i <= 20; i++) {
        char detail[200];
        snprintf(detail, sizeof(detail), "fault %u %0120d", i, 0);
        world_blame(world, "r1", "run:g/0", "infra", "store", detail);
        if (i < 20)
            world_wait(world, 30000);
    }
    const char *text = expect_end(world, "g/0", OUTCOME_INFRA)->end_detail;
    assert_non_null(strstr(text, "+0 s infra on r1, store: fault 1 0"));
    assert_non_null(strstr(text, "\n...\n"));
    assert_null(strstr(text, "fault 2 0"));
    assert_non_null(strstr(text, "store: fault 19 0"));
    assert_non_null(strstr(text, "+570 s infra on r1, store: fault 20 0"));
    world_close(world);
}

static void the_next_stage_begins_with_a_clean_slate(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.infra_budget = 2;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_beat(world, "r1", "run", 1, NULL);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "infra");
    world_wait(world, 500);
    world_result(world, "r1", "run:g/0", expect_job(world, "r1", "run:g/0"), "ok");
    world_beat(world, "e1", "eval", 1, NULL);
    world_result(world, "e1", "eval:g/0", expect_job(world, "e1", "eval:g/0"), "infra");
    assert_int_equal(expect(world, PERSIST_FAILURES)->failures.infras, 1);
    assert_null(seen_nth(world, PERSIST_END, 0));
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_outcome_is_tried_again_up_to_its_budget),
        cmocka_unit_test(infra_and_task_outcomes_do_not_share_a_budget),
        cmocka_unit_test(one_task_outcome_counts_once_however_often_it_comes),
        cmocka_unit_test(every_change_of_a_jobs_counts_goes_to_disk),
        cmocka_unit_test(budgets_outlive_the_broker),
        cmocka_unit_test(what_went_missing_is_on_disk_and_counted_after_a_restart),
        cmocka_unit_test(a_failure_that_is_sent_again_after_a_restart_counts_once),
        cmocka_unit_test(a_suspect_is_one_after_a_restart_too),
        cmocka_unit_test(failures_of_another_stage_or_of_nobody_are_not_restored),
        cmocka_unit_test(whatever_the_disk_says_stays_within_bounds),
        cmocka_unit_test(a_history_keeps_its_beginning_and_its_end_and_is_bounded),
        cmocka_unit_test(a_set_aside_rollout_tells_its_first_and_its_last_failures),
        cmocka_unit_test(the_next_stage_begins_with_a_clean_slate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
