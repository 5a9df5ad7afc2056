/* The end of a worker: drained by a signal or the broker, with and without a broker. */
#include "tests/workers/service/worker_clock.h"

static void a_worker_told_to_stop_drains_first(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    kill(worker.pid, SIGTERM);
    hear_beat_until(heard.beat.draining);
    assert_true(beat_has("run:g/0"));
    say_start("run:g/1"); /* not taken any more */
    engine_stop(request);
    skip_to_result("run:g/0");
    hear_beat_until(beat_has("run:g/0"));
    assert_false(beat_has("run:g/1"));
    say_ack("run:g/0", token);
    assert_int_equal(worker_wait(&worker), 0);
}

/* A result with outcome cancelled, which the broker hands out elsewhere. */
static void hear_given_back(const char *job, uint64_t token)
{
    const struct msg_job_result *result = hear_result(job);
    assert_true(slice_is(result->outcome, "cancelled"));
    assert_int_equal(result->token, token);
    say_ack(job, token);
}

static void after_the_grace_jobs_are_given_back(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "1s");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    kill(worker.pid, SIGTERM);
    hear_beat_until(heard.beat.draining);
    hear_given_back("run:g/0", token);
    engine_see_close(request);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_broker_drains_a_worker_as_a_signal_does(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "1s");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    say_drain(-1); /* its own grace */
    hear_beat_until(heard.beat.draining);
    assert_true(beat_has("run:g/0"));
    say_start("run:g/1"); /* not taken any more */
    hear_given_back("run:g/0", token);
    engine_see_close(request);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_drained_worker_lets_jobs_end_within_the_grace_it_is_given(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "0s");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    say_drain(600);
    hear_beat_until(heard.beat.draining);
    engine_stop(request);
    assert_true(slice_is(skip_to_result("run:g/0")->outcome, "infra")); /* its own end */
    say_ack("run:g/0", token);
    assert_int_equal(worker_wait(&worker), 0);
}

static void of_several_drains_the_earliest_end_holds(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "600s");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    int64_t began_ms = worker_now_ms();
    say_drain(-1);
    hear_beat_until(heard.beat.draining);
    say_drain(1);
    say_drain(500);
    hear_given_back("run:g/0", token);
    assert_in_range(worker_now_ms() - began_ms, 900, 15000);
    engine_see_close(request);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_signal_during_a_drain_brings_its_end_nearer_and_a_second_ends_it(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "60s");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    say_drain(600);
    hear_beat_until(heard.beat.draining);
    kill(worker.pid, SIGTERM); /* 60 s from here: it does not leave at once */
    hear_beat();
    skip_to_beat();
    assert_true(beat_has("run:g/0"));
    kill(worker.pid, SIGTERM);
    hear_given_back("run:g/0", token);
    engine_see_close(request);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_second_signal_ends_the_wait(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "600s");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    kill(worker.pid, SIGINT);
    hear_beat_until(heard.beat.draining);
    kill(worker.pid, SIGTERM);
    hear_given_back("run:g/0", token);
    engine_see_close(request);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_draining_worker_stays_until_its_results_are_acknowledged(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start("run:g/0");
    hear_result("run:g/0");
    say_drain(-1);
    worker_skip(2000);
    hear_result("run:g/0"); /* sent again: it was not acknowledged */
    say_ack("run:g/0", token);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_worker_that_is_never_acknowledged_ends_all_the_same(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "0s");
    open_lane(1);
    say_start("run:g/0");
    hear_result("run:g/0");
    say_drain(-1);
    hear_beat_until(heard.beat.draining);
    worker_skip(3000);
    hear_beat_until(true); /* 5 s for the acknowledgement are not over */
    worker_skip(2000);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_drain_without_its_broker_ends_within_its_bound(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "1s");
    open_lane(1);
    say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    broker_die();
    int64_t began_ms = worker_now_ms();
    kill(worker.pid, SIGTERM);
    engine_see_close(request);
    worker_skip(5000);
    assert_int_equal(worker_wait(&worker), 0);
    assert_true(worker_now_ms() - began_ms < 15000); /* the grace, 5 s, and 2 s for what is on its way */
}

static void a_broker_that_comes_back_during_a_drain_gets_what_is_left(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--grace", "20s");
    open_lane(1);
    uint64_t token = say_start("run:g/0");
    hear_result("run:g/0");
    broker_die();
    kill(worker.pid, SIGTERM);
    broker_come_back();
    open_lane(2);
    hear_result("run:g/0");
    say_ack("run:g/0", token);
    assert_int_equal(worker_wait(&worker), 0);
}

static void a_worker_whose_spawner_died_ends_with_4(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    char path[64];
    int spawner = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)worker.pid, (int)worker.pid);
    FILE *children = fopen(path, "r");
    if (!children)
        skip(); /* a kernel without CONFIG_PROC_CHILDREN */
    assert_int_equal(fscanf(children, "%d", &spawner), 1);
    fclose(children);
    hear_beat(); /* it has found the broker */
    kill(spawner, SIGKILL);
    hear_beat_until(heard.beat.draining);
    assert_int_equal(worker_wait(&worker), 4);
}

static void a_worker_without_a_broker_ends_when_told(void **state)
{
    (void)state;
    broker_die();
    struct worker_process worker = worker_start("init");
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_worker_may_end_with_its_parent(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct worker_process worker = worker_start("run", "--with-parent");
        if (write(ends[1], worker.said, 12) == 12)
            pause();
        _exit(1);
    }
    close(ends[1]);
    char word[12];
    wait_readable(ends[0], "worker");
    assert_int_equal(read(ends[0], word, sizeof(word)), sizeof(word));
    close(ends[0]);
    hear_beat();
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    hear_beat_until(heard.beat.draining);
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(a_worker_told_to_stop_drains_first),
        TEST(after_the_grace_jobs_are_given_back),
        TEST(a_broker_drains_a_worker_as_a_signal_does),
        TEST(a_drained_worker_lets_jobs_end_within_the_grace_it_is_given),
        TEST(of_several_drains_the_earliest_end_holds),
        TEST(a_signal_during_a_drain_brings_its_end_nearer_and_a_second_ends_it),
        TEST(a_second_signal_ends_the_wait),
        TEST(a_draining_worker_stays_until_its_results_are_acknowledged),
        TEST(a_worker_that_is_never_acknowledged_ends_all_the_same),
        TEST(a_drain_without_its_broker_ends_within_its_bound),
        TEST(a_broker_that_comes_back_during_a_drain_gets_what_is_left),
        TEST(a_worker_whose_spawner_died_ends_with_4),
        TEST(a_worker_without_a_broker_ends_when_told),
        TEST(a_worker_may_end_with_its_parent),
    };
    return cmocka_run_group_tests_name("worker_drain", tests, worker_clock_open, NULL);
}
