/* What a turn of a worker has for its broker, as one message where the broker reads such. */
#include "tests/workers/service/worker_harness.h"

enum { JOBS = 20 };

/* So many jobs at once, numbered from 0, as the lane brings what a cycle of the broker has. */
static void say_jobs(unsigned count)
{
    struct buffer bundle = {0};
    for (unsigned i = 0; i < count; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%u", i);
        const struct msg_job_start start = {.job = slice_from_str(job),
                                            .token = ++next_token,
                                            .stage = slice_from_str("run"),
                                            .group = slice_from_str("g"),
                                            .attempt = 1,
                                            .task = slice_from_str(noop_task)};
        struct buffer bytes = encode(MSG_job_start, &start);
        assert_true(bundle_add(&bundle, buffer_peek(&bytes)));
        buffer_finish(&bytes);
    }
    const struct slice said = bundle_peek(&bundle);
    say_bytes(said.data, said.len, 0);
    buffer_finish(&bundle);
}

static void say_all_acks(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%u", i);
        say_ack(job, next_token);
    }
}

/* Their results, in the order in which they were given; how many bundles came meanwhile. */
static unsigned hear_results(unsigned count)
{
    const unsigned before = heard_bundles;
    for (unsigned i = 0; i < count; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%u", i);
        assert_true(slice_is(hear_result(job)->outcome, "ok"));
    }
    return heard_bundles - before;
}

static void open_lane_with(uint64_t epoch, bool bundles)
{
    connect_lane(hear_beat()->lane);
    assert_true(heard.beat.has_bundles && heard.beat.bundles);
    say_hello_with(epoch, bundles);
    hear_beat_until(heard.beat.epoch == epoch);
}

static void results_of_a_turn_come_as_one(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--slots", "64");
    open_lane_with(1, true);
    say_jobs(JOBS);
    assert_int_equal(hear_results(JOBS), 1);
    hear_results(JOBS); /* again, since nobody acknowledged them */
    say_all_acks(JOBS);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

static void assert_results_come_alone(unsigned count, bool bundles)
{
    struct worker_process worker = worker_start("run", "--slots", "64");
    open_lane_with(1, bundles);
    say_jobs(count);
    assert_int_equal(hear_results(count), 0);
    say_all_acks(count);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_result_of_a_turn_of_its_own_comes_as_it_is(void **state)
{
    (void)state;
    assert_results_come_alone(1, true);
}

static void a_broker_that_says_nothing_of_bundles_gets_none(void **state)
{
    (void)state;
    assert_results_come_alone(JOBS, false);
}

static void a_broker_of_an_earlier_release_that_comes_back_gets_results_alone_once_it_has_said_hello(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--slots", "64");
    open_lane_with(1, true);
    say_jobs(JOBS);
    assert_int_equal(hear_results(JOBS), 1);
    broker_die();
    broker_come_back();
    open_lane_with(2, false);
    assert_int_equal(hear_results(JOBS), 0); /* sent again */
    say_all_acks(JOBS);
    assert_int_equal(worker_stop(&worker), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_of_a_turn_come_as_one),
        TEST(a_result_of_a_turn_of_its_own_comes_as_it_is),
        TEST(a_broker_that_says_nothing_of_bundles_gets_none),
        TEST(a_broker_of_an_earlier_release_that_comes_back_gets_results_alone_once_it_has_said_hello),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
