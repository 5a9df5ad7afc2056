/*
 * What leaves before the disk has it, and what a power cut makes of that. The broker is a process of its own whose
 * syncs are held up; the cut is its end by SIGKILL and the loss of all of its log that no sync had served.
 */
#include "tests/broker/io/io_world.h"

#include "broker/ledger/ledger.h"
#include "tests/broker/ledger/slow_disk.h"

int __real_ledger_commit(struct ledger *ledger, struct fail *fail);
int __wrap_ledger_commit(struct ledger *ledger, struct fail *fail);
int __wrap_ledger_commit(struct ledger *ledger, struct fail *fail)
{
    while (atomic_load(&slow_disk()->holds_writes))
        usleep(SLOW_DISK_STEP_US);
    return __real_ledger_commit(ledger, fail);
}

static int tear_down(void **state)
{
    atomic_store(&slow_disk()->is_held, false);
    atomic_store(&slow_disk()->holds_writes, false);
    return world_tear_down(state);
}

static void hold_syncs(bool is_held) { atomic_store(&slow_disk()->is_held, is_held); }

static void hold_writes(bool are_held) { atomic_store(&slow_disk()->holds_writes, are_held); }

/* Of the log, for a cut to lose. */
static bool has_undurable(const struct world *world, char ret_path[static 128])
{
    struct stat log;
    snprintf(ret_path, 128, "%s/ledger.db-wal", world->data);
    assert_int_equal(stat(ret_path, &log), 0);
    return log.st_size > slow_disk()->durable_len;
}

/* Jobs leave before their batch is written, so what is to be lost is waited for. */
static void cut_power(struct world *world)
{
    char path[128];
    world_until(world, has_undurable(world, path));
    world_stop(world, SIGKILL);
    assert_int_equal(truncate(path, slow_disk()->durable_len), 0);
    hold_syncs(false);
    world_start(world);
}

static bool hears_feed(struct world *world)
{
    char bytes[1];
    return zmq_recv(world->subscriber, bytes, sizeof(bytes), ZMQ_DONTWAIT) >= 0;
}

/* Everything of it is done, and nothing was promised to anybody: each worker keeps its result. */
static void work_through_undurable(struct world *world, const char *group)
{
    struct msg_group_submit message = submit_of(world, group, 1);
    struct fake *last = &world->fakes[STAGE_EVAL];
    const uint64_t started = last->started;
    while (hears_feed(world))
        ;
    hold_syncs(true);
    world_send(world, world->client, MSG_group_submit, &message);
    world_until(world, last->started > started && last->held[last->held_count - 1].answered);
    const int64_t until_ms = clock_ms() + 3 * BEAT_MS;
    world_until(world, clock_ms() > until_ms);
    assert_false(world_take_answer(world));
    assert_false(hears_feed(world));
}

static bool is_known(struct world *world, const char *rollout)
{
    struct msg_rollout_get get = {.tag = ++world->tag, .rollout = S(rollout)};
    struct msg_refused refused;
    world_send(world, world->client, MSG_rollout_get, &get);
    do
        world_until(world, world_take_answer(world));
    while (world_decode(&world->answer, MSG_group_accepted, &(struct msg_group_accepted){0}));
    return !world_decode(&world->answer, MSG_refused, &refused);
}

static uint64_t fetch_head(struct world *world)
{
    struct msg_stream_fetch fetch = {
        .tag = ++world->tag, .stream = S("train"), .from = 1, .has_limit = true, .limit = 16};
    struct msg_stream_head head;
    world_send(world, world->client, MSG_stream_fetch, &fetch);
    do
        world_until(world, world_take_answer(world));
    while (!world_decode(&world->answer, MSG_stream_head, &head) || head.tag != fetch.tag);
    return head.head;
}

static void a_job_that_was_done_before_its_submit_was_durable_was_done_in_vain(void **state)
{
    struct world *world = *state;
    submit(world, "before", 1, false);
    world_until(world, fetch_head(world) == 1);
    work_through_undurable(world, "lost");
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        assert_int_equal(world->fakes[stage].held_count, 1);
    cut_power(world);
    /* The old results come again, of a rollout that nobody knows: each is let go. */
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        world_until(world, world->fakes[stage].held_count == 0);
    assert_false(is_known(world, "lost/0"));
    assert_int_equal(fetch_head(world), 1);
    submit(world, "lost", 1, false); /* as its client does, who has no answer */
    world_until(world, fetch_head(world) == 2);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        assert_int_equal(world->fakes[stage].started, 3);
}

#ifndef HANDOVER_LITTLE
/* What the first thread does at once leaves before it is committed; what the ledger's thread does, after that. */
static void a_job_done_before_its_submit_was_written_was_done_in_vain(void **state)
{
    struct world *world = *state;
    const struct msg_group_submit message = submit_of(world, "unwritten", 1);
    struct fake *init = &world->fakes[STAGE_INIT];
    submit(world, "before", 1, false);
    world_until(world, fetch_head(world) == 1 && init->held_count == 0);
    hold_writes(true);
    world_send(world, world->client, MSG_group_submit, &message);
    world_until(world, init->held_count == 1 && init->held[0].answered);
    world_stop(world, SIGKILL);
    hold_writes(false);
    world_start(world);
    world_until(world, init->held_count == 0);
    assert_false(is_known(world, "unwritten/0"));
    assert_int_equal(fetch_head(world), 1);
    submit(world, "unwritten", 1, false);
    world_until(world, fetch_head(world) == 2);
    assert_int_equal(init->started, 3);
    assert_int_equal(world->fakes[STAGE_RUN].started, 2);
}
#endif

static void of_results_that_were_not_durable_none_is_lost(void **state)
{
    struct world *world = *state;
    world->fakes[STAGE_RUN].allowance = 0;
    submit(world, "kept", 4, false);
    world_until(world, world->fakes[STAGE_RUN].started == 4);
    assert_int_equal(fetch_head(world), 0); /* and who has these jobs is durable, by this answer */
    hold_syncs(true);
    world->fakes[STAGE_RUN].allowance = UINT64_MAX;
    world_until(world, world->fakes[STAGE_EVAL].started == 4);
    assert_int_equal(world->fakes[STAGE_RUN].held_count, 4);
    cut_power(world);
    world_until(world, fetch_head(world) == 4);
    for (enum stage stage = STAGE_RUN; stage < STAGE_COUNT; stage++)
        world_until(world, world->fakes[stage].held_count == 0);
    assert_int_equal(world->fakes[STAGE_RUN].started, 4); /* their workers had them still */
}

static void a_disk_that_stands_still_delays_promises_and_nothing_else(void **state)
{
    struct world *world = *state;
    work_through_undurable(world, "slow");
    hold_syncs(false);
    struct msg_group_accepted accepted;
    world_expect(world, MSG_group_accepted, &accepted);
    assert_true(slice_is(accepted.group, "slow"));
    world_until(world, fetch_head(world) == 1);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        world_until(world, world->fakes[stage].held_count == 0);
}

static void a_failed_job_is_done_again_by_its_worker_though_the_disk_stands_still(void **state)
{
    struct world *world = *state;
    struct fake *run = &world->fakes[STAGE_RUN];
    run->allowance = 0;
    run->fails = true;
    submit(world, "again", 1, false);
    world_until(world, run->started == 1);
    hold_syncs(true);
    run->fails = false;
    run->allowance = UINT64_MAX;
    world_until(world, run->started == 2); /* it has let go of what it keeps of the first time */
    world_until(world, world->fakes[STAGE_EVAL].started == 1);
    hold_syncs(false);
    world_until(world, fetch_head(world) == 1);
}

/* Beats that list no job come while its start is held up, for several times --hold-grace. */
static void a_job_whose_start_waits_for_a_disk_that_takes_no_writes_is_not_missed(void **state)
{
    struct world *world = *state;
    const struct msg_group_submit message = submit_of(world, "held", 1);
    submit(world, "before", 1, false);
    world_until(world, fetch_head(world) == 1);
    hold_writes(true);
    world_send(world, world->client, MSG_group_submit, &message);
    const int64_t until_ms = clock_ms() + 25 * BEAT_MS;
    world_until(world, clock_ms() > until_ms);
    hold_writes(false);
    world_until(world, fetch_head(world) == 2);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        assert_int_equal(world->fakes[stage].started, 2);
}

/* None of them takes as long as a broker that stands still does, and each longer than --hold-grace. */
static void jobs_whose_starts_wait_for_one_slow_commit_after_another_are_not_missed(void **state)
{
    enum { COMMITS = 6, COMMIT_MS = 700 };
    struct world *world = *state;
    char names[COMMITS][16];
    for (int i = 0; i < COMMITS; i++) {
        snprintf(names[i], sizeof(names[i]), "slow-%d", i);
        const struct msg_group_submit message = submit_of(world, names[i], 1);
        hold_writes(true);
        world_send(world, world->client, MSG_group_submit, &message);
        const int64_t until_ms = clock_ms() + COMMIT_MS;
        world_until(world, clock_ms() > until_ms);
        const unsigned syncs = atomic_load(&slow_disk()->syncs);
        hold_writes(false);
        world_until(world, atomic_load(&slow_disk()->syncs) != syncs); /* of what was written */
    }
    world_until(world, fetch_head(world) == COMMITS);
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        assert_int_equal(world->fakes[stage].started, COMMITS);
}

/* With sanitizers its last words would also tell of what it leaves behind. */
static void a_sync_that_fails_while_a_batch_is_at_work_ends_the_broker_in_order(void **state)
{
    struct world *world = *state;
    struct msg_group_submit message = submit_of(world, "first", 1);
    char words[8192];
    int status;
    world_stop(world, SIGKILL);
    world->keeps_words = true;
    world_start(world);
    hold_syncs(true);
    world_send(world, world->client, MSG_group_submit, &message);
    world_until(world, world->fakes[STAGE_EVAL].started == 1);
    hold_writes(true);
    message.group = S("second");
    world_send(world, world->client, MSG_group_submit, &message);
    const int64_t until_ms = clock_ms() + BEAT_MS;
    world_until(world, clock_ms() > until_ms);
    atomic_store(&slow_disk()->is_broken, true);
    hold_syncs(false);
    const int64_t fails_ms = clock_ms() + BEAT_MS;
    world_until(world, clock_ms() > fails_ms);
    hold_writes(false);
    assert_false(world_read_until(world->words, NULL, words, sizeof(words)));
    assert_int_equal(waitpid(world->broker, &status, 0), world->broker);
    world->broker = 0;
    atomic_store(&slow_disk()->is_broken, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_non_null(strstr(words, "sync"));
    if (strstr(words, "Sanitizer"))
        fail_msg("%s", words);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up_fakes, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_job_that_was_done_before_its_submit_was_durable_was_done_in_vain),
#ifndef HANDOVER_LITTLE
        TEST(a_job_done_before_its_submit_was_written_was_done_in_vain),
#endif
        TEST(of_results_that_were_not_durable_none_is_lost),
        TEST(a_disk_that_stands_still_delays_promises_and_nothing_else),
        TEST(a_failed_job_is_done_again_by_its_worker_though_the_disk_stands_still),
        TEST(a_job_whose_start_waits_for_a_disk_that_takes_no_writes_is_not_missed),
        TEST(jobs_whose_starts_wait_for_one_slow_commit_after_another_are_not_missed),
        TEST(a_sync_that_fails_while_a_batch_is_at_work_ends_the_broker_in_order),
    };
    slow_disk();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    slow_disk_remove();
    return failed;
}
