/* The ledger: what a restore tells beyond who is where; failures, early cancels, owners, summary. */
#include "tests/broker/ledger/ledger_world.h"

#include "broker/ledger/inner.h"

/* ---- groups, in full ------------------------------------------------------------------------ */

static bool tell_all_of_group(void *context, const struct core_group_row *row)
{
    const struct core_task *task = &row->task;
    return buffer_printf(context,
                         "%.*s p%llu lease=%llu at=%llu %.*s image='%.*s' engine=%d"
                         " %lld/%lld/%lld total=%lld bytes=%llu\n",
                         SLICE_ARG(row->group), (unsigned long long)row->priority, (unsigned long long)row->lease_ms,
                         (unsigned long long)row->accepted_ms, SLICE_ARG(task->id), SLICE_ARG(task->image),
                         task->needs_engine, (long long)task->limit_ms[STAGE_INIT],
                         (long long)task->limit_ms[STAGE_RUN], (long long)task->limit_ms[STAGE_EVAL],
                         (long long)task->total_ms, (unsigned long long)task->bytes);
}

static bool tell_weight(void *context, const struct core_rollout_row *row)
{
    return buffer_printf(context, " %.*s %llu bytes at %llu\n", SLICE_ARG(row->rollout),
                         (unsigned long long)row->record_bytes, (unsigned long long)row->ended_ms);
}

static const char *restored_in_full(struct world *world, uint64_t early_cancels_since_ms)
{
    buffer_clear(&world->told);
    struct ledger_reader reader = text_reader(&world->told);
    struct fail fail = {0};
    reader.group = tell_all_of_group;
    reader.rollout = tell_weight;
    reader.early_cancels_since_ms = early_cancels_since_ms;
    if (ledger_restore(world->ledger, &reader, &fail) != 0)
        fail_msg("%s", fail.text);
    assert_true(buffer_append(&world->told, "", 1));
    return (const char *)world->told.data;
}

static void an_owner_and_what_a_submit_asked_for_come_back(void **state)
{
    struct world *world = *state;
    struct effect mine = group("a", "train", 1);
    mine.owner = S("ann");
    mine.priority = 9;
    mine.lease_ms = 60000;
    mine.accepted_ms = 1763697600000;
    commit_one(world, mine);
    reopen(world);
    assert_string_equal(restored_in_full(world, 0),
                        "stream train 1..0 of ann\n"
                        "a p9 lease=60000 at=1763697600000 add image='host' engine=0 120000/600000/120000"
                        " total=604800000 bytes=28\n"
                        " a/0 0 bytes at 0\n");
    struct effect again = group("b", "train", 1); /* before there were keys */
    again.owner = S("bob");
    commit_one(world, again);
    assert_non_null(strstr(restored_in_full(world, 0), "stream train 1..0 of bob\n"));
}

static bool note_room(void *context, uint64_t groups)
{
    return buffer_printf(context, "room for %llu\n", (unsigned long long)groups);
}

static void the_reader_hears_first_how_many_groups_there_are_and_of_each_its_stream(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 1), group("b", "eval", 1), group("c", "train", 1),
                                     init_of("b", S(""), S(""))};
    commit(world, effects, 4);
    reopen(world);
    buffer_clear(&world->told);
    struct ledger_reader reader = text_reader(&world->told);
    reader.room = note_room;
    assert_int_equal(ledger_restore(world->ledger, &reader, NULL), 0);
    assert_true(buffer_append(&world->told, "", 1));
    assert_string_equal((const char *)world->told.data, "stream train 1..0\n"
                                                        "stream eval 1..0\n"
                                                        "room for 3\n"
                                                        "group a train x1 task=add init=0  0\n"
                                                        " a/0 open\n"
                                                        "group b eval x1 task=add init=1  35\n"
                                                        " b/0 open\n"
                                                        "group c train x1 task=add init=0  0\n"
                                                        " c/0 open\n");
}

static void a_summary_that_was_said_is_told_without_reading_the_task(void **state)
{
    struct world *world = *state;
    struct core_task summary = {
        .id = S("other"), .image = S("/img"), .needs_engine = true, .limit_ms = {1, 2, 3}, .total_ms = 4, .bytes = 5};
    struct effect said = group("a", "train", 1);
    said.summary = &summary;
    commit_one(world, said);
    reopen(world);
    assert_string_equal(restored_in_full(world, 0),
                        "stream train 1..0\n"
                        "a p0 lease=0 at=0 other image='/img' engine=1 1/2/3 total=4 bytes=5\n"
                        " a/0 0 bytes at 0\n");
}

static void a_run_that_waits_for_its_evaluator_is_told_with_its_weight(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), init_of("a", S(""), S("")), run_of("a/0", S("0123456789")),
                                     run_of("a/1", S(""))};
    commit(world, effects, 4);
    reopen(world);
    const char *told = restored_in_full(world, 0);
    assert_non_null(strstr(told, " a/0 10 bytes at 0\n"));
    assert_non_null(strstr(told, " a/1 0 bytes at 0\n"));
}

static void a_kept_trajectory_is_told_with_its_weight_and_age(void **state)
{
    struct world *world = *state;
    struct effect cut_short = end_of("train", 2, "a", "a/1");
    cut_short.record = S("the record of a run that failed");
    const struct effect effects[] = {group("a", "train", 3), run_of("a/0", S("0123456789")),
                                     end_of("train", 1, "a", "a/0"), cut_short, end_of("train", 3, "a", "a/2")};
    commit(world, effects, 5);
    reopen(world);
    const char *told = restored_in_full(world, 0);
    assert_non_null(strstr(told, " a/0 10 bytes at 5\n"));
    assert_non_null(strstr(told, " a/1 31 bytes at 5\n"));
    assert_non_null(strstr(told, " a/2 0 bytes at 5\n"));
}

/* ---- failures --------------------------------------------------------------------------------- */

static struct effect failures_of(const char *job, uint64_t infras, const char *history)
{
    return (struct effect){.kind = PERSIST_FAILURES,
                           .failures = {.job = S(job),
                                        .attempt = infras + 1,
                                        .infras = infras,
                                        .faults = 2,
                                        .blames = 3,
                                        .deaths = 4,
                                        .missing = 5,
                                        .history = S(history),
                                        .fenced_up_to = infras << 32}};
}

static void failures_are_told_after_what_they_befell(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 3),
                                     group("b", "train", 1024),
                                     init_of("a", S(""), S("")),
                                     failures_of("run:a/2", 1, "once"),
                                     failures_of("init:b", 5, "its init"),
                                     failures_of("run:b/1023", 6, "the last"),
                                     failures_of("init:a", 7, "another init"),
                                     failures_of("run:a/0", 8, "the first")};
    commit(world, effects, sizeof(effects) / sizeof(*effects));
    reopen(world);
    const char *told = restored(world);
    assert_non_null(
        strstr(told, " a/0 open\n run:a/0 attempt=9 infras=8 faults=2 blames=3 deaths=4"
                     " missing=5 fenced_up_to=34359738368 'the first'\n a/1 open\n a/2 open\n run:a/2 attempt=2"));
    assert_non_null(strstr(told, "'once'\n init:a attempt=8"));
    assert_non_null(strstr(told, " b/1023 open\n run:b/1023 attempt=7 infras=6"));
    assert_non_null(strstr(told, "'the last'\n init:b attempt=6 infras=5"));
}

static void a_jobs_failures_replace_the_rollouts_earlier_one_of_any_stage(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 1), failures_of("run:a/0", 1, "once"),
                                     failures_of("run:a/0", 2, "twice"), failures_of("eval:a/0", 1, "its eval")};
    commit(world, effects, 4);
    reopen(world);
    const char *told = restored(world);
    assert_non_null(strstr(told, " eval:a/0 attempt=2 infras=1"));
    assert_null(strstr(told, "run:a/0"));
}

static void an_ended_rollouts_failures_are_not_told_and_swept_with_it(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), failures_of("run:a/0", 1, "gone"),
                                     failures_of("init:a", 1, "gone too"), failures_of("run:a/1", 1, "stays"),
                                     end_of("train", 1, "a", "a/0")};
    commit(world, effects, 5);
    reopen(world);
    assert_null(strstr(restored(world), "run:a/0"));
    assert_non_null(strstr(restored(world), "'stays'"));
    const struct effect last[] = {end_of("train", 2, "a", "a/1"), ack("train", 2)};
    commit(world, last, 2);
    do_all_chores(world);
    assert_int_equal(ledger_ask(world->ledger, LEDGER_ALL_FAILURES, NULL, 0, NULL), 0);
}

static void failures_of_no_job_are_refused(void **state)
{
    struct world *world = *state;
    static const char *const jobs[] = {"", "run", "run:", "run:a/9999", "init:nobody"};
    commit_one(world, group("a", "train", 1));
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
        struct effect effect = failures_of(jobs[i], 1, "");
        assert_int_equal(ledger_begin(world->ledger, NULL), 0);
        assert_int_equal(ledger_apply(world->ledger, &effect, NULL), -ENOENT);
        assert_int_equal(ledger_commit(world->ledger, NULL), 0);
    }
}

/* ---- leases ------------------------------------------------------------------------------------- */

static struct effect lease_of(const char *job, uint64_t token, const char *worker, const char *key)
{
    return (struct effect){.kind = PERSIST_LEASE,
                           .lease = {.job = S(job), .token = token, .worker = S(worker), .key = S(key)}};
}

static void the_newest_lease_of_each_job_is_told_and_swept_with_it(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2),
                                     lease_of("init:a", 1ull << 32, "i1", "node1"),
                                     init_of("a", S(""), S("")),
                                     lease_of("run:a/0", (1ull << 32) + 1, "r1", ""),
                                     lease_of("run:a/1", (1ull << 32) + 2, "r1", ""),
                                     lease_of("run:a/1", UINT64_MAX >> 1, "r2", "node2"),
                                     run_of("a/0", S("r")),
                                     lease_of("eval:a/0", (1ull << 32) + 4, "e1", "node3")};
    commit(world, effects, sizeof(effects) / sizeof(*effects));
    reopen(world);
    const char *told = restored(world);
    assert_non_null(strstr(told, " eval:a/0 leased 4294967300 to e1 of node3\n a/1 open\n"
                                 " run:a/1 leased 9223372036854775807 to r2 of node2\n"));
    assert_non_null(strstr(told, " init:a leased 4294967296 to i1 of node1\n"));
    assert_null(strstr(told, "r1"));
    const struct effect last[] = {end_of("train", 1, "a", "a/0"), end_of("train", 2, "a", "a/1"), ack("train", 2)};
    commit(world, last, 3);
    do_all_chores(world);
    assert_int_equal(ledger_ask(world->ledger, LEDGER_ALL_LEASES, NULL, 0, NULL), 0);
}

static void of_a_run_that_is_to_be_done_again_nothing_is_left(void **state)
{
    struct world *world = *state;
    struct effect again = {.kind = PERSIST_AGAIN, .rollout = S("a/0")};
    const struct effect effects[] = {group("a", "train", 1), init_of("a", S(""), S("")), run_of("a/0", S("first")),
                                     again};
    commit(world, effects, 4);
    reopen(world);
    assert_non_null(strstr(restored(world), " a/0 again\n"));
    commit_one(world, end_of("train", 1, "a", "a/0")); /* it was cancelled meanwhile */
    struct msg_trajectory got;
    assert_int_equal(ledger_read_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_false(got.has_record);
    assert_int_equal(ledger_read_end(world->ledger, NULL), 0);
}

static void an_init_or_a_run_that_was_done_again_takes_the_place_of_the_first(void **state)
{
    struct world *world = *state;
    struct effect again = {.kind = PERSIST_AGAIN, .rollout = S("a/0")};
    const struct effect effects[] = {group("a", "train", 1),
                                     init_of("a", S("sha256:first"), S("1")),
                                     run_of("a/0", S("first")),
                                     again,
                                     init_of("a", S("sha256:second"), S("")),
                                     run_of("a/0", S("second")),
                                     end_of("train", 1, "a", "a/0")};
    commit(world, effects, 7);
    reopen(world);
    assert_non_null(strstr(restored(world), "init=1 sha256:second 35"));
    struct msg_trajectory got;
    assert_int_equal(ledger_read_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.record, "second"));
    assert_int_equal(ledger_read_end(world->ledger, NULL), 0);
}

/* ---- early cancels -------------------------------------------------------------------------------- */

static struct effect early_cancel(const char *name, const char *owner, uint64_t wall_ms, bool present)
{
    return (struct effect){.kind = PERSIST_EARLY_CANCEL,
                           .present = present,
                           .early_cancel = {.name = S(name), .owner = S(owner), .clock_ms = wall_ms}};
}

static void early_cancels_come_back_until_they_are_dropped_or_old(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {early_cancel("a", "ann", 1000, true),   early_cancel("a", "", 2000, true),
                                     early_cancel("a/3", "bob", 3000, true), early_cancel("b", "bob", 3000, true),
                                     early_cancel("b", "bob", 0, false),     early_cancel("c", "bob", 4000, true),
                                     early_cancel("c", "ann", 0, false)};
    commit(world, effects, sizeof(effects) / sizeof(*effects));
    reopen(world);
    assert_string_equal(restored_in_full(world, 1001), "early cancel a of  at 2000\n"
                                                       "early cancel a/3 of bob at 3000\n"
                                                       "early cancel c of bob at 4000\n");
    reopen(world); /* and the old one was dropped, not only left out */
    assert_null(strstr(restored_in_full(world, 0), "ann"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_reader_hears_first_how_many_groups_there_are_and_of_each_its_stream),
        TEST(an_owner_and_what_a_submit_asked_for_come_back),
        TEST(a_summary_that_was_said_is_told_without_reading_the_task),
        TEST(a_run_that_waits_for_its_evaluator_is_told_with_its_weight),
        TEST(a_kept_trajectory_is_told_with_its_weight_and_age),
        TEST(failures_are_told_after_what_they_befell),
        TEST(a_jobs_failures_replace_the_rollouts_earlier_one_of_any_stage),
        TEST(an_ended_rollouts_failures_are_not_told_and_swept_with_it),
        TEST(failures_of_no_job_are_refused),
        TEST(the_newest_lease_of_each_job_is_told_and_swept_with_it),
        TEST(of_a_run_that_is_to_be_done_again_nothing_is_left),
        TEST(an_init_or_a_run_that_was_done_again_takes_the_place_of_the_first),
        TEST(early_cancels_come_back_until_they_are_dropped_or_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
