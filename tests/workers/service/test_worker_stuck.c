/*
 * A file system that does not answer. A FIFO stands in for it: opening one in the store blocks its
 * thread until the other end is opened, and no cancel reaches it.
 */
#include "tests/workers/service/worker_clock.h"

#define HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const char task_on_layer[] =
    "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"},\"limits\":{\"run_s\":1}}";
static char fifo[256];

/* A worker with one slot, and in it a job whose layer cannot be opened. */
static struct worker_process start_stuck_job(const char *grace, uint64_t *token)
{
    char place[256];
    struct worker_process worker = worker_start("run", "--slots", "1", "--grace", grace);
    open_lane(1);
    snprintf(place, sizeof(place), "%s/data/store/%.2s", directory, HEX);
    snprintf(fifo, sizeof(fifo), "%s/data/store/%.2s/%s.tar.lz4", directory, HEX, HEX);
    assert_int_equal(mkdir(place, 0755), 0);
    assert_int_equal(mkfifo(fifo, 0644), 0);
    *token = say_start_on("run:g/0", ++next_token, task_on_layer, silent_url, "sha256:" HEX);
    hear_beat_until(beat_has("run:g/0"));
    return worker;
}

/* The file system answers again: with no byte. */
static void let_go(void)
{
    int64_t end = clock_ms() + BOUND_MS;
    int fd;
    while ((fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        assert_true(errno == ENXIO && clock_ms() < end);
    close(fd);
}

static void a_stuck_job_takes_its_slot_and_gives_it_back(void **state)
{
    (void)state;
    uint64_t token;
    struct worker_process worker = start_stuck_job("30s", &token);
    say_cancel("run:g/0", token);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_false(heard.beat.draining);
    worker_skip(5000);
    hear_beat_until(heard.beat.draining); /* it has no slot for another job */
    say_start("run:g/1");
    skip_to_beat();
    skip_to_beat();
    assert_false(beat_has("run:g/1"));
    let_go();
    hear_beat_until(!heard.beat.draining);
    say_start("run:g/2");
    hear_result("run:g/2");
    say_ack("run:g/2", next_token);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_stuck_job_does_not_hold_up_a_drain(void **state)
{
    (void)state;
    uint64_t token;
    struct worker_process worker = start_stuck_job("0s", &token);
    int64_t began_ms = worker_now_ms();
    say_drain(-1);
    assert_true(slice_is(hear_result("run:g/0")->outcome, "cancelled"));
    say_ack("run:g/0", token);
    hear_beat_until(heard.beat.jobs.count == 0);
    worker_skip(5000);
    assert_int_equal(worker_wait(&worker), 0);
    assert_true(worker_now_ms() - began_ms < 15000);
}

/* 1 s of its own, 8 to prepare, 20 to pack, and 1. */
static void a_stuck_job_is_answered_when_all_its_time_is_over(void **state)
{
    (void)state;
    uint64_t token;
    struct worker_process worker = start_stuck_job("0s", &token);
    int64_t began_ms = worker_now_ms();
    for (int s = 1; s < 30; s++)
        skip_to_beat();
    while (hear(BOUND_MS) && heard.id != MSG_job_result)
        assert_true(worker_now_ms() - began_ms < 60000);
    assert_true(slice_is(heard.result.job, "run:g/0"));
    assert_true(slice_is(heard.result.outcome, "infra"));
    assert_true(slice_is(heard.result.fault, "store"));
    assert_in_range(worker_now_ms() - began_ms, 20000, 31000); /* before the broker would take it */
    say_ack("run:g/0", token);
    let_go();
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(a_stuck_job_takes_its_slot_and_gives_it_back),
        TEST(a_stuck_job_does_not_hold_up_a_drain),
        TEST(a_stuck_job_is_answered_when_all_its_time_is_over),
    };
    return cmocka_run_group_tests_name("worker_stuck", tests, worker_clock_open, NULL);
}
