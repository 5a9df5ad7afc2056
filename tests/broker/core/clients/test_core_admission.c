/* Admission: what happens to a submit as the quotas fill up. */
#include "tests/broker/core/core_world.h"

static void submit_as(struct world *world, const char *client, const char *group, uint64_t samples)
{
    world->name = client;
    world_submit_task(world, group, client ? client : "train", samples, "{}");
}

static const struct seen *expect_full(const struct world *world, const char *words)
{
    const struct seen *refused = expect_refused(world, REFUSAL_QUEUE_FULL);
    if (!strstr(refused->text, words))
        fail_msg("'%s' is not in '%s'", words, refused->text);
    assert_in_range(refused->retry_ms, 1000, 60000);
    assert_int_equal(seen_count(world, PERSIST_GROUP), 0);
    return refused;
}

static struct world *world_of(uint64_t rollouts_max)
{
    struct world *world = world_create();
    world->settings.rollouts_max = rollouts_max;
    world->settings.client_percent = 100;
    return world;
}

static void the_first_threshold_is_a_warning(void **state)
{
    (void)state;
    struct world *world = world_of(100);
    world_start(world);
    world_submit(world, "a", 74);
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text, "");
    world_submit(world, "b", 1);
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text,
                        "75 % of the rollouts that fit are live; at 100 % submits are refused, "
                        "queue-full: try again later");
    world_submit(world, "b", 1); /* the same again is told the same */
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    assert_non_null(strstr(expect_answer(world, MSG_group_accepted)->text, "75 %"));
    world_cancel(world, NULL, "b", NULL);
    world_submit(world, "c", 1);
    assert_non_null(strstr(expect_answer(world, MSG_group_accepted)->text, "75 %"));
    world_cancel(world, NULL, "a", NULL);
    world_submit(world, "d", 1);
    assert_string_equal(expect_answer(world, MSG_group_accepted)->text, "");
    world_close(world);
}

static void a_client_that_is_alone_may_fill_it_and_not_more(void **state)
{
    (void)state;
    struct world *world = world_of(100);
    world_start(world);
    world_submit(world, "a", 99);
    expect_answer(world, MSG_group_accepted);
    world_submit(world, "b", 2);
    expect_full(world, "99 rollouts have not ended, 100 are the limit; try again later");
    world_submit(world, "b", 1);
    expect_answer(world, MSG_group_accepted);
    world_submit(world, "c", 1);
    expect_full(world, "100 rollouts have not ended, 100 are the limit");
    world_cancel(world, "a/0", NULL, NULL);
    world_submit(world, "c", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void the_last_threshold_is_kept_for_clients_below_their_equal_share(void **state)
{
    (void)state;
    struct world *world = world_of(100);
    world_start(world);
    submit_as(world, "alice", "a1", 80);
    expect_answer(world, MSG_group_accepted);
    submit_as(world, "bob", "b1", 15);
    expect_answer(world, MSG_group_accepted); /* 95 % and two clients: 50 each */
    submit_as(world, "alice", "a2", 1);
    expect_full(world, "yours: 80 rollouts have not ended, 50 are the limit for each client while "
                       "nearly all is taken");
    submit_as(world, "bob", "b2", 2);
    expect_answer(world, MSG_group_accepted);
    submit_as(world, "carol", "c1", 3); /* she has nothing yet: 33 for each of three */
    expect_answer(world, MSG_group_accepted);
    submit_as(world, "carol", "c2", 1);
    expect_full(world, "100 rollouts have not ended, 100 are the limit");
    world_close(world);
}

static void a_client_gets_its_per_cent_and_no_more(void **state)
{
    (void)state;
    struct world *world = world_of(100);
    world->settings.client_percent = 40;
    world_start(world);
    submit_as(world, "alice", "a1", 30);
    assert_non_null(
        strstr(expect_answer(world, MSG_group_accepted)->text, "75 % of your share of the rollouts that fit are live"));
    submit_as(world, "alice", "a2", 10);
    expect_answer(world, MSG_group_accepted);
    submit_as(world, "alice", "a3", 1);
    expect_full(world, "yours: 40 rollouts have not ended, 40 are the limit for one client");
    submit_as(world, "bob", "b1", 40);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void what_can_never_fit_is_too_large_and_not_to_be_tried_again(void **state)
{
    (void)state;
    struct world *world = world_of(100);
    world->settings.client_percent = 50;
    world->settings.task_bytes_max = 2000;
    world_start(world);
    world->name = "alice";
    world_submit(world, "a", 51);
    const struct seen *refused = expect_refused(world, REFUSAL_TOO_LARGE);
    assert_string_equal(refused->field, "samples");
    assert_int_equal(refused->retry_ms, 0);
    world->task.bytes = 1001;
    world_submit(world, "a", 1);
    refused = expect_refused(world, REFUSAL_TOO_LARGE);
    assert_string_equal(refused->field, "task");
    assert_int_equal(refused->retry_ms, 0);
    world->task.bytes = 1000;
    world_submit(world, "a", 50);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void bytes_of_tasks_are_bounded_until_their_groups_have_ended(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.task_bytes_max = 1000;
    world->task.bytes = 400;
    world_start(world);
    world_submit(world, "a", 2);
    world_submit(world, "b", 1);
    assert_non_null(
        strstr(expect_answer(world, MSG_group_accepted)->text, "80 % of the bytes of tasks that fit are held"));
    world_submit(world, "c", 1);
    expect_full(world, "800 bytes of tasks have not ended, 1000 are the limit");
    world_cancel(world, "a/0", NULL, NULL);
    world_submit(world, "c", 1);
    expect_full(world, "800 bytes");
    world_cancel(world, "a/1", NULL, NULL);
    world_submit(world, "c", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void trajectories_that_nobody_acknowledges_stop_submits(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.results_max = 4;
    world_start(world);
    world_submit(world, "a", 3);
    world_cancel(world, NULL, "a", NULL);
    world_submit(world, "b", 1);
    assert_non_null(strstr(expect_answer(world, MSG_group_accepted)->text,
                           "75 % of the trajectories that fit wait for an acknowledgement"));
    world_cancel(world, NULL, "b", NULL);
    world_submit(world, "c", 1);
    expect_full(world, "4 trajectories are not acknowledged, 4 are the limit; acknowledge them: "
                       "sluice ack, or stream.ack");
    world_ack(world, "train", 2);
    world_submit(world, "c", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void a_trajectory_weighs_its_record_and_a_fixed_part(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.results_bytes_max = 3000;
    world_start(world);
    world_reach_run(world, "g", 1);
    world_submit(world, "h", 1);
    world_beat(world, "r1", "run", 1, NULL);
    char record[1000] = {1};
    uint8_t *bytes = (uint8_t *)record;
    core_handle(world->core, world->now_ms, WALL_MS, &(struct caller){.is_admin = true}, MSG_job_result,
                &(struct msg_job_result){.worker = TEXT("r1"),
                                         .job = TEXT("run:g/0"),
                                         .token = token_of(world, "run:g/0"),
                                         .outcome = TEXT("ok"),
                                         .ms = 1,
                                         .record = slice_of(bytes, sizeof(record))},
                NULL, 0);
    core_effects_clear(world->core);
    world_settle(world);
    world_cancel(world, NULL, "g", NULL); /* 1024 + 1000 */
    world_submit(world, "i", 1);
    expect_full(world, "2024 bytes of trajectories are not acknowledged, 3000 are the limit");
    world_ack(world, "train", 1);
    world_submit(world, "i", 1);
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void restored_work_counts_too(void **state)
{
    (void)state;
    struct world *world = world_of(3);
    world->settings.results_bytes_max = 3000;
    world->task.bytes = 100;
    world_start(world);
    struct core_group_row group = {.group = TEXT("g"),
                                   .stream = TEXT("hers"),
                                   .samples = 3,
                                   .task = world->task,
                                   .init_done = true,
                                   .priority = 5};
    struct core_rollout_row live = {.rollout = TEXT("g/0"), .group = TEXT("g"), .sample = 0};
    struct core_rollout_row ended = {.rollout = TEXT("g/1"),
                                     .group = TEXT("g"),
                                     .sample = 1,
                                     .ended = true,
                                     .stream = TEXT("hers"),
                                     .seq = 6,
                                     .record_bytes = 500,
                                     .ended_ms = WALL_MS};
    assert_true(core_restore_stream(world->core, TEXT("hers"), TEXT("alice"), 5, 6));
    assert_true(core_restore_group(world->core, &group));
    assert_true(core_restore_rollout(world->core, &live));
    assert_true(core_restore_rollout(world->core, &ended));
    ended.rollout = TEXT("g/2"), ended.sample = 2, ended.seq = 5, ended.record_bytes = 200;
    assert_true(core_restore_rollout(world->core, &ended));
    submit_as(world, "alice", "h", 3);
    expect_full(world, "1 rollouts have not ended, 3 are the limit");
    world->name = NULL;
    world_submit_task(world, "h", "hers", 1, "{}");
    expect_full(world, "2748 bytes of trajectories");
    world_ack(world, "hers", 5); /* 1024 + 200 */
    world_submit_task(world, "h", "hers", 1, "{}");
    expect_answer(world, MSG_group_accepted);
    world_close(world);
}

static void retry_after_follows_the_pace_of_late(void **state)
{
    (void)state;
    struct world *world = world_of(100);
    world_start(world);
    world_submit(world, "a", 100);
    world_submit(world, "b", 1);
    assert_int_equal(expect_full(world, "100 rollouts")->retry_ms, 10000); /* nothing has ended */
    for (unsigned i = 0; i < 10; i++) {                                    /* one a second */
        char name[16];
        snprintf(name, sizeof(name), "a/%u", i);
        world_wait(world, 1000);
        world_cancel(world, name, NULL, NULL);
    }
    world_submit(world, "b", 10);
    expect_answer(world, MSG_group_accepted);
    world_submit(world, "c", 20);
    uint64_t twenty = expect_full(world, "100 rollouts")->retry_ms;
    assert_in_range(twenty, 15000, 25000);
    world_submit(world, "c", 5);
    assert_in_range(expect_full(world, "100 rollouts")->retry_ms, twenty / 5, twenty / 3);
    world_submit(world, "c", 90);
    assert_int_equal(expect_full(world, "100 rollouts")->retry_ms, 60000);
    world_close(world);
}

static void a_low_disk_refuses_submits_until_there_is_room(void **state)
{
    (void)state;
    struct world *world = world_open();
    core_disk_is_low(world->core, true);
    world_submit(world, "a", 1);
    assert_int_equal(expect_refused(world, REFUSAL_DISK_LOW)->retry_ms, 5000);
    world_wait(world, 1000);
    core_disk_is_low(world->core, false);
    world_submit(world, "a", 1);
    expect_answer(world, MSG_group_accepted);
    core_disk_is_low(world->core, true);
    world_submit(world, "a", 1); /* what was accepted is, whatever the disk */
    assert_true(expect_answer(world, MSG_group_accepted)->known);
    world_close(world);
}

/* ---- the page ---------------------------------------------------------------------- */

static void expect_row(const char *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void expect_row(const char *page, const char *format, ...)
{
    char row[512];
    va_list args;
    va_start(args, format);
    vsnprintf(row, sizeof(row), format, args);
    va_end(args);
    if (!strstr(page, row))
        fail_msg("docs/operations.md lacks: %s", row);
}

static void expect_quota(const char *page, const char *setting, const char *filled, const char *remedy)
{
    char option[64];
    snprintf(option, sizeof(option), "%s", setting);
    for (char *at = option; (at = strchr(at, '_'));)
        *at = '-';
    expect_row(page, "| `--%s` | %s | %s |\n", option, filled, remedy);
}

static void the_operations_page_says_the_thresholds_and_quotas(void **state)
{
    (void)state;
    char path[4096];
    static char page[65536];
    snprintf(path, sizeof(path), "%s/docs/operations.md", getenv("SLUICE_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
    fclose(file);
#define ADMISSION(name, percent, meaning) expect_row(page, "| %d %% | %s |\n", percent, meaning);
#include "broker/core/clients/admission.def"
#undef ADMISSION
#define QUOTA(name, setting, used, filled, remedy) expect_quota(page, #setting, filled, remedy);
#include "broker/core/state/quotas.def"
#undef QUOTA
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_threshold_is_a_warning),
        cmocka_unit_test(a_client_that_is_alone_may_fill_it_and_not_more),
        cmocka_unit_test(the_last_threshold_is_kept_for_clients_below_their_equal_share),
        cmocka_unit_test(a_client_gets_its_per_cent_and_no_more),
        cmocka_unit_test(what_can_never_fit_is_too_large_and_not_to_be_tried_again),
        cmocka_unit_test(bytes_of_tasks_are_bounded_until_their_groups_have_ended),
        cmocka_unit_test(trajectories_that_nobody_acknowledges_stop_submits),
        cmocka_unit_test(a_trajectory_weighs_its_record_and_a_fixed_part),
        cmocka_unit_test(restored_work_counts_too),
        cmocka_unit_test(retry_after_follows_the_pace_of_late),
        cmocka_unit_test(the_operations_page_says_the_thresholds_and_quotas),
        cmocka_unit_test(a_low_disk_refuses_submits_until_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
