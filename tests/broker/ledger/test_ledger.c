/* The ledger: what is committed is there again, in the words of a restore. */
#include "tests/broker/ledger/ledger_world.h"

#include "broker/ledger/inner.h"

/* ---- tests: round trips ----------------------------------------------------------------------------- */

static void a_new_ledger_restores_nothing(void **state) { assert_string_equal(restored(*state), ""); }

static void every_effect_is_there_after_reopening(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {
        {.kind = PERSIST_EPOCH, .seq = 7},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:1"), .present = true},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:2"), .present = true},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:1"), .present = false},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:3"), .present = true},
        {.kind = PERSIST_ENGINE,
         .engine = S("http://e:3"),
         .present = true,
         .row = {.runs_max = 64,
                 .draining = true,
                 .version = S("v7"),
                 .version_number = 121,
                 .calls = S("abort"),
                 .paused_until_ms = 1763697600000}},
        group("a", "train", 3),
        group("b", "valid", 1),
        init_of("a", S("sha256:init"), S("init bytes")),
        run_of("a/0", S("record 0")),
        end_of("train", 1, "a", "a/0"),
        run_of("a/2", S("record 2")),
    };
    commit(world, effects, sizeof(effects) / sizeof(*effects));
    reopen(world);
    assert_string_equal(restored(world), "stream train 1..1\n"
                                         "stream valid 1..0\n"
                                         "engine http://e:2\n"
                                         "engine http://e:3 x64 version=v7 #121 abort until 1763697600000 draining\n"
                                         "group a train x3 task=add init=1 sha256:init 35\n"
                                         " a/0 ended train 1\n"
                                         " a/1 open\n"
                                         " a/2 run agent '3 turns' 5100 http://e:1\n"
                                         "group b valid x1 task=add init=0  0\n"
                                         " b/0 open\n");
    uint64_t epoch;
    assert_int_equal(ledger_next_epoch(world->ledger, &epoch, NULL), 0);
    assert_int_equal(epoch, 8);
}

static void each_start_has_a_greater_epoch(void **state)
{
    struct world *world = *state;
    for (uint64_t wanted = 1; wanted <= 3; wanted++) {
        uint64_t epoch;
        assert_int_equal(ledger_next_epoch(world->ledger, &epoch, NULL), 0);
        assert_int_equal(epoch, wanted);
        reopen(world);
    }
}

static uint64_t versions_of(struct world *world)
{
    uint64_t versions = UINT64_MAX;
    assert_int_equal(ledger_get_versions(world->ledger, &versions, NULL), 0);
    return versions;
}

static void the_highest_version_outlives_the_engine_that_served_it(void **state)
{
    struct world *world = *state;
    assert_int_equal(versions_of(world), 0);
    const struct effect effects[] = {{.kind = PERSIST_ENGINE,
                                      .engine = S("http://e:1"),
                                      .present = true,
                                      .row = {.version = S("v7"), .version_number = 9}},
                                     {.kind = PERSIST_ENGINE,
                                      .engine = S("http://e:2"),
                                      .present = true,
                                      .row = {.version = S("v6"), .version_number = 8}},
                                     {.kind = PERSIST_ENGINE, .engine = S("http://e:1")}};
    commit(world, effects, 3);
    reopen(world);
    assert_int_equal(versions_of(world), 9);
}

static void a_trajectory_comes_back_with_every_field(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), run_of("a/1", S("the record")),
                                     end_of("train", 1, "a", "a/1")};
    commit(world, effects, 3);
    reopen(world);
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.rollout, "a/1") && slice_is(got.group, "a"));
    assert_true(slice_is(got.task, "add") && slice_is(got.outcome, "ok"));
    assert_true(slice_is(got.stream, "train") && slice_is(got.detail, "half") && got.has_detail);
    assert_true(slice_is(got.init_layer, "sha256:init") && got.has_init_layer);
    assert_true(slice_is(got.engine, "http://e:1") && got.has_engine);
    assert_true(slice_is(got.record, "the record") && got.has_record);
    assert_true(got.trainable && got.has_reward && got.reward == 0.5);
    assert_int_equal(got.seq, 1);
    assert_int_equal(got.sample, 1);
    assert_int_equal(got.attempt, 2);
    assert_int_equal(got.wait_ms, 1);
    assert_int_equal(got.init_ms, 2);
    assert_int_equal(got.run_ms, 3);
    assert_int_equal(got.eval_ms, 4);
    assert_int_equal(got.ended_ms, 5);
    assert_false(got.has_tag);
    struct fail fail;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 2, &got, &fail), -ENOENT);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("none"), 1, &got, &fail), -ENOENT);
}

static void what_an_evaluator_said_beyond_the_reward_comes_back_with_its_group_and_metadata(void **state)
{
    struct world *world = *state;
    struct effect asked = group("a", "train", 3), end = end_of("train", 1, "a", "a/1");
    asked.task = S("{\"task\":\"t\",\"metadata\": {\"k\": [1, 2] } }");
    end.verdict = S("the verdict");
    end.end.has_raw_reward = true;
    end.end.raw_reward = -2.25;
    end.end.group_ended = 2;
    const struct effect effects[] = {asked, run_of("a/1", S("the record")), end, end_of("train", 2, "a", "a/2")};
    commit(world, effects, 4);
    reopen(world);
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.verdict, "the verdict") && got.has_verdict && slice_is(got.record, "the record"));
    assert_true(slice_is(got.metadata, "{\"k\": [1, 2] }") && got.has_metadata);
    assert_true(got.has_raw_reward && got.raw_reward == -2.25 && got.reward == 0.5);
    assert_true(got.has_group_size && got.group_size == 3 && got.has_group_ended && got.group_ended == 2);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 2, &got, NULL), 0);
    assert_false(got.has_verdict || got.has_raw_reward);
}

static void an_evaluation_is_told_how_long_the_run_was_where_the_run_said_so(void **state)
{
    struct world *world = *state;
    struct effect run = run_of("a/0", S("record"));
    run.has_length = run.truncated = true;
    run.sampled_tokens = 1220;
    const struct effect effects[] = {group("a", "train", 2), init_of("a", S(""), S("")), run,
                                     run_of("a/1", S("record"))};
    struct effect job = {.kind = LANE_JOB,
                         .stage = STAGE_EVAL,
                         .job = S("eval:a/0"),
                         .group = S("a"),
                         .rollout = S("a/0"),
                         .attempt = 1,
                         .token = 1};
    struct msg_job_start start;
    commit(world, effects, 4);
    assert_int_equal(ledger_load_job(world->ledger, &job, &start, NULL), 0);
    assert_true(start.has_sampled_tokens && start.sampled_tokens == 1220 && start.has_truncated && start.truncated);
    job.rollout = S("a/1");
    job.sample = 1;
    assert_int_equal(ledger_load_job(world->ledger, &job, &start, NULL), 0);
    assert_false(start.has_sampled_tokens || start.has_truncated);
}

static void a_record_given_with_the_end_is_kept(void **state)
{
    struct world *world = *state;
    struct effect end = end_of("train", 1, "a", "a/0");
    end.record = S("what there was");
    const struct effect effects[] = {group("a", "train", 1), end};
    commit(world, effects, 2);
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.record, "what there was"));
}

static struct effect job_of(enum stage stage)
{
    return (struct effect){.kind = LANE_JOB,
                           .stage = stage,
                           .group = S("a"),
                           .rollout = S("a/1"),
                           .job = S("job"),
                           .sample = 1,
                           .token = 9,
                           .attempt = 1,
                           .engine = S("http://e:1")};
}

static void check_jobs(struct world *world, struct slice layer)
{
    struct msg_job_start got;
    struct effect job = job_of(STAGE_INIT);
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(got.has_task && slice_is(got.task, task_json) && slice_is(got.stage, "init") && got.token == 9);
    assert_false(got.has_init_layer || got.has_run_layer || got.has_answer);
    job = job_of(STAGE_RUN);
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_is(got.task, task_json) && slice_equal(got.init_layer, layer));
    assert_true(slice_is(got.init_layer_digest, "sha256:init") && got.has_engine);
    assert_false(got.has_run_layer || got.has_answer);
    job = job_of(STAGE_EVAL);
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_is(got.task, task_json) && slice_equal(got.init_layer, layer));
    assert_true(slice_is(got.run_layer, "run bytes") && slice_is(got.run_layer_digest, "sha256:run"));
    assert_true(slice_is(got.answer, "\\boxed{2}") && !got.has_record);
    job.reads_record = true;
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_equal(got.init_layer, layer) && slice_is(got.run_layer, "run bytes"));
    assert_true(slice_is(got.answer, "\\boxed{2}") && slice_is(got.record, "record"));
    ledger_release(world->ledger); /* and what was loaded holds back no checkpoint */
    assert_int_equal(ledger_checkpoint(world->ledger, NULL), 0);
}

static void a_jobs_payload_is_the_same_from_the_cache_and_from_the_file(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), init_of("a", S("sha256:init"), S("init bytes")),
                                     run_of("a/1", S("record"))};
    commit(world, effects, 3);
    check_jobs(world, S("init bytes"));
    reopen(world);
    check_jobs(world, S("init bytes"));
}

static void the_largest_layer_comes_with_its_jobs(void **state)
{
    struct world *world = *state;
    AUTO_FREE uint8_t *bytes = malloc(1 << 20);
    memset(bytes, 'x', 1 << 20);
    struct slice layer = slice_of(bytes, 1 << 20);
    const struct effect effects[] = {group("a", "train", 2), init_of("a", S("sha256:init"), layer),
                                     run_of("a/1", S("record"))};
    commit(world, effects, 3);
    check_jobs(world, layer);
    check_jobs(world, layer);
}

static struct effect start_of(enum stage stage, const char *id, const char *rollout)
{
    return (struct effect){.kind = LANE_JOB,
                           .stage = stage,
                           .job = S("job"),
                           .group = S(id),
                           .rollout = S(rollout),
                           .attempt = 1,
                           .token = 1};
}

static void assert_given(struct world *world, enum stage stage, const char *task)
{
    struct effect job = start_of(stage, "a", "a/1");
    struct msg_job_start got;
    job.sample = 1;
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_is(got.task, task));
}

static void metadata_goes_to_those_who_are_shown_the_task_and_to_the_trainer(void **state)
{
#define LONG "{\"k\": \"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 \\\" } \"}"
    static const char whole[] = "{\"task\":\"t\", \"metadata\" : " LONG " ,\"prompt\":\"p\"}",
                      bare[] = "{\"task\":\"t\", \"metadata\" : {} ,\"prompt\":\"p\"}";
    struct world *world = *state;
    const struct core_task summary = {.id = S("t"), .shown_in = 1u << STAGE_EVAL};
    struct effect asked = group("a", "train", 3);
    asked.task = S(whole);
    asked.summary = &summary;
    const struct effect effects[] = {asked, init_of("a", S(""), S("")), run_of("a/1", S("record")),
                                     end_of("train", 1, "a", "a/0")};
    commit(world, effects, 4);
    for (int times = 0; times < 2; times++) {
        assert_given(world, STAGE_INIT, bare);
        assert_given(world, STAGE_RUN, bare);
        assert_given(world, STAGE_EVAL, whole);
        reopen(world);
        struct msg_trajectory got;
        assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
        assert_true(got.has_metadata && slice_is(got.metadata, LONG));
    }
#undef LONG
}

static void more_than_the_cache_holds_is_read_from_the_file_again(void **state)
{
    enum { GROUPS = 2 * CACHE_BYTES_MAX / TASK_BYTES_MAX, LEN = TASK_BYTES_MAX };
    struct world *world = *state;
    AUTO_FREE char *task = malloc(LEN);
    for (int backwards = 0; backwards < 2; backwards++)
        for (int k = 0; k < GROUPS; k++) {
            const int i = backwards ? GROUPS - 1 - k : k;
            char id[16];
            snprintf(id, sizeof(id), "g%d", i);
            memset(task, 'a' + i % 26, LEN);
            if (!backwards) {
                struct effect asked = group(id, "train", 1);
                asked.task = slice_of(task, LEN);
                commit_one(world, asked);
            }
            const struct effect job = start_of(STAGE_INIT, id, "");
            struct msg_job_start got;
            assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
            assert_true(slice_equal(got.task, slice_of(task, LEN)));
            assert_true(world->ledger->cache_bytes <= CACHE_BYTES_MAX);
        }
}

static void a_job_that_cannot_be_is_not_found(void **state)
{
    struct world *world = *state;
    static const char *const rollouts[] = {"a/7", "a/", "/1", "a/1024", "a/1x", "nothing", "b/1"};
    commit_one(world, group("a", "train", 2));
    commit_one(world, init_of("a", S(""), S("")));
    for (size_t i = 0; i < sizeof(rollouts) / sizeof(*rollouts); i++) {
        struct effect job = job_of(STAGE_EVAL);
        job.rollout = S(rollouts[i]);
        struct msg_job_start got;
        assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), -ENOENT);
    }
}

/* ---- tests: forgetting ------------------------------------------------------------------------------ */

static void what_is_acknowledged_is_forgotten_at_once_and_swept_in_slices(void **state)
{
    struct world *world = *state;
    commit_ended(world, 600);
    do_all_chores(world);
    commit_one(world, ack("train", 599));
    assert_true(ledger_has_chores(world->ledger)); /* one commit does not sweep 599 */
    const char *told = restored(world);
    assert_non_null(strstr(told, "stream train 600..600\n"));
    assert_null(strstr(told, "g1/0"));
    assert_non_null(strstr(told, " g600/0 ended train 600\n"));
    do_all_chores(world);
    reopen(world);
    told = restored(world);
    assert_null(strstr(told, "g599/0"));
    assert_non_null(strstr(told, "group g599 train x1 task= init=0  0\n")); /* the id is known */
    assert_non_null(strstr(told, " g600/0 ended train 600\n"));
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 5, &got, NULL), -ENOENT);
}

static void the_head_is_remembered_when_everything_is_forgotten(void **state)
{
    struct world *world = *state;
    commit_ended(world, 3);
    commit_one(world, ack("train", 3));
    do_all_chores(world);
    reopen(world);
    assert_non_null(strstr(restored(world), "stream train 4..3\n"));
}

static void a_group_half_acknowledged_keeps_its_other_rollouts(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 3), end_of("train", 1, "a", "a/2"),
                                     end_of("train", 2, "a", "a/0"), ack("train", 1)};
    commit(world, effects, 4);
    do_all_chores(world);
    reopen(world);
    assert_string_equal(restored(world), "stream train 2..2\n"
                                         "group a train x3 task=add init=0  0\n"
                                         " a/0 ended train 2\n"
                                         " a/1 open\n");
}

static void an_id_taken_again_before_the_sweep_is_the_new_group(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), end_of("train", 1, "a", "a/0"),
                                     end_of("train", 2, "a", "a/1"), ack("train", 2)};
    commit(world, effects, 3);
    const struct effect again[] = {effects[3], group("a", "train", 1)};
    commit(world, again, 2);
    do_all_chores(world);
    reopen(world);
    assert_string_equal(restored(world), "stream train 3..2\n"
                                         "group a train x1 task=add init=0  0\n"
                                         " a/0 open\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_new_ledger_restores_nothing),
        TEST(every_effect_is_there_after_reopening),
        TEST(each_start_has_a_greater_epoch),
        TEST(the_highest_version_outlives_the_engine_that_served_it),
        TEST(a_trajectory_comes_back_with_every_field),
        TEST(what_an_evaluator_said_beyond_the_reward_comes_back_with_its_group_and_metadata),
        TEST(an_evaluation_is_told_how_long_the_run_was_where_the_run_said_so),
        TEST(a_record_given_with_the_end_is_kept),
        TEST(a_jobs_payload_is_the_same_from_the_cache_and_from_the_file),
        TEST(the_largest_layer_comes_with_its_jobs),
        TEST(metadata_goes_to_those_who_are_shown_the_task_and_to_the_trainer),
        TEST(more_than_the_cache_holds_is_read_from_the_file_again),
        TEST(a_job_that_cannot_be_is_not_found),
        TEST(what_is_acknowledged_is_forgotten_at_once_and_swept_in_slices),
        TEST(the_head_is_remembered_when_everything_is_forgotten),
        TEST(a_group_half_acknowledged_keeps_its_other_rollouts),
        TEST(an_id_taken_again_before_the_sweep_is_the_new_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
