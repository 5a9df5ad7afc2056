/*
 * A worker and a broker that do not hear each other: results kept, a frozen worker, a stuck one.
 */
#include "tests/workers/service/worker_clock.h"

#include <sys/ptrace.h>

/* ---- results that nobody acknowledges --------------------------------------------------- */

/* Its layer travels in the result: about 60 KB that do not compress. */
static const char heavy_task[] = "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"head -c 60000 /dev/urandom > f\"]}";

enum { SLOTS = 4, HEAVY_MAX = 40 };

static bool kept[HEAVY_MAX];

/* Beats until one says that no slot is left beyond what it holds; gives it jobs meanwhile. */
static uint64_t fill_outbox(void)
{
    int started = 0;
    memset(kept, 0, sizeof(kept));
    for (int64_t end = clock_ms() + 3 * BOUND_MS;; assert_true(clock_ms() < end)) {
        hear_beat();
        if (heard.beat.jobs.count > SLOTS && heard.beat.slots == heard.beat.jobs.count)
            return heard.beat.jobs.count;
        char job[32];
        for (int i = 0; i < SLOTS && started < HEAVY_MAX; i++) {
            snprintf(job, sizeof(job), "init:g%d", started++);
            say_start_as(job, ++next_token, heavy_task, NULL);
        }
    }
}

/* Acknowledges whatever comes until the worker holds nothing. */
static int empty_outbox(void)
{
    int count = 0, number = -1;
    char job[64];
    for (int64_t end = clock_ms() + BOUND_MS; hear(end - clock_ms());) {
        if (heard.id == MSG_worker_beat && heard.beat.jobs.count == 0)
            return count;
        if (heard.id != MSG_job_result)
            continue;
        snprintf(job, sizeof(job), "%.*s", SLICE_ARG(heard.result.job));
        assert_int_equal(sscanf(job, "init:g%d", &number), 1);
        assert_true(slice_is(heard.result.outcome, "ok"));
        count += !kept[number];
        kept[number] = true;
        say_ack(job, heard.result.token);
    }
    fail_msg("the worker still holds results after %d ms", BOUND_MS);
    return count;
}

static void a_worker_with_too_many_unacknowledged_results_takes_no_more_and_loses_none(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("init", "--slots", "4", "--outbox", "1MiB");
    open_lane(1);
    uint64_t held = fill_outbox();
    assert_true(held >= 16 && held <= 20 + SLOTS); /* 1 MiB of 60 KB each, and a result per slot */
    say_start_as("init:g39", ++next_token, heavy_task, NULL);
    hear_beat();
    hear_beat();
    assert_int_equal(heard.beat.jobs.count, held); /* it was not taken */
    broker_die();
    broker_come_back();
    open_lane(2);
    assert_int_equal(empty_outbox(), held);
    hear_beat_until(heard.beat.slots == SLOTS);
    say_start_as("init:g39", ++next_token, heavy_task, NULL);
    hear_result("init:g39");
    say_ack("init:g39", next_token);
    assert_int_equal(worker_stop(&worker), 0);
}

/* ---- a frozen worker -------------------------------------------------------------------- */

static void wait_until_stopped(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

/* What was on its way when it was stopped has come; then nothing does. */
static void hear_silence(int64_t for_ms)
{
    while (hear(for_ms))
        ;
}

static void a_worker_that_was_frozen_lets_go_of_what_was_given_to_others(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    hear_beat_until(beat_has("run:g/0"));
    kill(worker.pid, SIGSTOP);
    wait_until_stopped(worker.pid);
    hear_silence(3000); /* by then the broker has given the job to another */
    kill(worker.pid, SIGCONT);
    hear_beat_until(beat_has("run:g/0")); /* it knows of nothing */
    say_cancel("run:g/0", token);
    engine_see_close(request);
    hear_beat_until(!beat_has("run:g/0"));
    assert_int_equal(worker_stop(&worker), 0);
}

static void the_late_result_of_a_frozen_worker_is_still_sent(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    kill(worker.pid, SIGSTOP);
    wait_until_stopped(worker.pid);
    hear_silence(1500);
    engine_stop(request); /* its call ends while it is frozen */
    kill(worker.pid, SIGCONT);
    assert_int_equal(skip_to_result("run:g/0")->token, token);
    say_ack("run:g/0", token);
    assert_int_equal(worker_stop(&worker), 0);
}

/* ---- a stuck thread ----------------------------------------------------------------------- */

/*
 * Only the thread that works stands still, as it would in an endless loop: ZeroMQ's own threads
 * go on and keep the connection, so nothing but the beats can tell.
 */
static void a_worker_whose_thread_is_stuck_does_not_beat_though_its_connection_lives(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t progress = hear_beat()->progress;
    hear_beat_until(heard.beat.progress > progress);
    progress = heard.beat.progress;
    if (ptrace(PTRACE_SEIZE, worker.pid, NULL, NULL) < 0)
        skip(); /* not allowed here */
    assert_int_equal(ptrace(PTRACE_INTERRUPT, worker.pid, NULL, NULL), 0);
    wait_until_stopped(worker.pid);
    while (hear(2500)) /* what was on its way */
        progress = heard.id == MSG_worker_beat ? heard.beat.progress : progress;
    say_start("run:g/0"); /* the connection still takes it */
    assert_false(hear(1000));
    assert_int_equal(ptrace(PTRACE_DETACH, worker.pid, NULL, NULL), 0);
    assert_true(slice_is(hear_result("run:g/0")->outcome, "ok"));
    hear_beat_until(heard.beat.progress > progress);
    say_ack("run:g/0", next_token);
    assert_int_equal(worker_stop(&worker), 0);
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(a_worker_with_too_many_unacknowledged_results_takes_no_more_and_loses_none),
        TEST(a_worker_that_was_frozen_lets_go_of_what_was_given_to_others),
        TEST(the_late_result_of_a_frozen_worker_is_still_sent),
        TEST(a_worker_whose_thread_is_stuck_does_not_beat_though_its_connection_lives),
    };
    return cmocka_run_group_tests_name("worker_silence", tests, worker_clock_open, NULL);
}
