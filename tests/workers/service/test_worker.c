#include "tests/workers/service/worker_clock.h"

/* ---- beats ------------------------------------------------------------------------------ */

static void a_worker_says_it_is_ready_and_beats(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--slots", "7");
    const struct msg_worker_beat *beat = hear_beat();
    assert_true(slice_is(beat->stage, "run"));
    assert_int_equal(beat->slots, 7);
    assert_int_equal(beat->epoch, 0);
    assert_int_equal(beat->jobs.count, 0);
    assert_false(beat->draining);
    struct utsname node;
    assert_int_equal(uname(&node), 0);
    assert_true(slice_is(beat->kernel, node.release));
    assert_true(beat->has_sandboxes && beat->sandboxes == 0);
    assert_true(beat->sandbox.len > 0); /* which tier is the machine's affair; test_tiers knows them */
    char ready[512];
    snprintf(ready, sizeof(ready), "worker ready stage=run id=%.*s lane=%.*s\n", SLICE_ARG(beat->worker),
             SLICE_ARG(beat->lane));
    assert_string_equal(worker.said, ready);
    unsigned port = 0;
    assert_int_equal(sscanf(ready + strlen(ready) - 27, "%*[^t]tcp://127.0.0.1:%u", &port), 1);
    assert_in_range(port, 20000, 29999);
    uint64_t progress = beat->progress;
    int64_t begin = clock_ms();
    assert_true(hear_beat()->progress > progress);
    assert_true(clock_ms() - begin < 1500);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_worker_starts_before_its_broker_and_finds_it(void **state)
{
    (void)state;
    broker_die();
    struct worker_process worker = worker_start("eval");
    broker_come_back();
    assert_true(slice_is(hear_beat()->stage, "eval"));
    assert_int_equal(heard.beat.slots, 4);
    int queued = 0;
    while (hear(QUIET_MS))
        queued++;
    assert_true(queued <= 1); /* beats of the time without a broker are not delivered late */
    assert_int_equal(worker_stop(&worker), 0);
}

static void lanes_and_sink_may_be_ipc(void **state)
{
    (void)state;
    broker_die();
    snprintf(front, sizeof(front), "ipc://%s/front", directory);
    snprintf(sink_endpoint, sizeof(sink_endpoint), "ipc://%s/sink", directory);
    broker_come_back();
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start("run:g/0");
    assert_true(slice_is(hear_result("run:g/0")->outcome, "ok"));
    say_ack("run:g/0", token);
    assert_int_equal(worker_stop(&worker), 0);
}

/* ---- jobs and results ------------------------------------------------------------------- */

static void a_result_is_kept_and_listed_until_it_is_acknowledged(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(3);
    uint64_t token = say_start("run:g/0");
    const struct msg_job_result *result = hear_result("run:g/0");
    assert_true(slice_is(result->outcome, "ok"));
    assert_int_equal(result->token, token);
    hear_beat_until(beat_has("run:g/0"));
    assert_int_equal(beat_token("run:g/0"), token);
    hear_result("run:g/0"); /* again, since nobody acknowledged it */
    assert_int_equal(heard.result.token, token);
    say_ack("run:g/0", token - 1); /* of an older dispatch: not this one */
    hear_beat_until(beat_has("run:g/0"));
    say_ack("run:g/0", token);
    hear_beat_until(!beat_has("run:g/0"));
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_new_broker_gets_the_unacknowledged_results_at_once(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(3);
    for (int i = 0; i < 3; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%d", i);
        say_start(job);
        hear_result(job);
    }
    broker_die();
    broker_come_back();
    hear_beat_until(heard.beat.jobs.count == 3);
    assert_int_equal(heard.beat.epoch, 3);
    bool seen[3] = {false};
    connect_lane(heard.beat.lane);
    say_hello(4);
    for (int64_t end = clock_ms() + BOUND_MS; !(seen[0] && seen[1] && seen[2]);) {
        assert_true(hear(end - clock_ms()));
        if (heard.id == MSG_job_result)
            seen[heard.result.job.data[heard.result.job.len - 1] - '0'] = true;
    }
    hear_beat_until(heard.beat.epoch == 4);
    kill(worker.pid, SIGKILL);
    assert_int_equal(worker_wait(&worker), 256 + SIGKILL);
}

static void a_running_job_outlives_its_broker(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(3);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    broker_die();
    broker_come_back();
    hear_beat_until(beat_token("run:g/0") == token);
    open_lane(4);
    engine_stop(request);
    assert_int_equal(skip_to_result("run:g/0")->token, token);
    say_ack("run:g/0", token);
    assert_int_equal(worker_stop(&worker), 0);
}

static void what_jobs_hold_on_an_engine_is_told_when_it_changes_and_to_each_new_broker(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(3);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    hear_beat_until(load.runs == 1);
    assert_string_equal(load.url, silent_url);
    unsigned count = load.count;
    skip_to_beat();
    skip_to_beat();
    assert_int_equal(load.count, count);
    broker_die();
    broker_come_back();
    memset(&load, 0, sizeof(load));
    open_lane(4);
    hear_beat_until(load.runs == 1);
    engine_stop(request);
    skip_to_result("run:g/0");
    say_ack("run:g/0", token);
    hear_beat_until(load.runs == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_job_given_twice_is_done_once(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    say_start_as("run:g/0", 5, chat_task, silent_url);
    say_start_as("run:g/0", 5, chat_task, silent_url);
    int request = engine_accept();
    hear_beat_until(beat_has("run:g/0"));
    assert_int_equal(heard.beat.jobs.count, 1);
    struct pollfd second = {.fd = engine_listener, .events = POLLIN};
    assert_int_equal(poll(&second, 1, QUIET_MS), 0);
    say_cancel("run:g/0", 5);
    engine_see_close(request);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_running_job_given_again_is_answered_with_the_newer_token(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    say_start_as("run:g/0", 5, chat_task, silent_url);
    int request = engine_accept();
    say_start_as("run:g/0", 9, chat_task, silent_url);
    say_start_as("run:g/0", 7, chat_task, silent_url);
    hear_beat_until(beat_token("run:g/0") == 9);
    engine_stop(request);
    assert_int_equal(skip_to_result("run:g/0")->token, 9);
    assert_false(slice_is(heard.result.outcome, "ok"));
    say_ack("run:g/0", 9);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_finished_job_given_again_is_answered_and_not_done_again(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    say_start_as("run:g/0", 5, noop_task, NULL);
    hear_result("run:g/0");
    int64_t begin = clock_ms();
    say_start_as("run:g/0", 9, noop_task, NULL);
    assert_int_equal(hear_result("run:g/0")->token, 5);
    assert_true(clock_ms() - begin < 1500); /* because it was asked, not because 2 s passed */
    say_ack("run:g/0", 9);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_cancelled_job_closes_its_requests_and_answers_nothing(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start_as("run:g/0", ++next_token, chat_task, silent_url);
    int request = engine_accept();
    hear_beat_until(beat_has("run:g/0"));
    say_cancel("run:g/0", token - 1); /* another dispatch: not this one */
    say_cancel("run:g/1", 0);         /* not here */
    hear_beat();
    hear_beat_until(beat_has("run:g/0"));
    say_cancel("run:g/0", 0);
    engine_see_close(request);
    say_start("run:g/2"); /* had the first answered, its result would come before this one */
    hear_result("run:g/2");
    hear_beat_until(!beat_has("run:g/0"));
    say_ack("run:g/2", next_token);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_cancelled_result_is_forgotten(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t token = say_start("run:g/0");
    hear_result("run:g/0");
    say_cancel("run:g/0", token);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_worker_takes_no_more_jobs_than_it_has_slots(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--slots", "2");
    open_lane(1);
    int requests[2];
    for (int i = 0; i < 3; i++) {
        char job[32], url[128];
        snprintf(job, sizeof(job), "run:g/%d", i);
        snprintf(url, sizeof(url), "%s/%d", silent_url, i); /* jobs of one engine share its probe */
        say_start_as(job, ++next_token, chat_task, url);
    }
    for (int i = 0; i < 2; i++)
        requests[i] = engine_accept();
    hear_beat_until(heard.beat.jobs.count > 0);
    assert_int_equal(heard.beat.jobs.count, 2);
    assert_false(beat_has("run:g/2"));
    say_cancel("run:g/0", 0);
    engine_see_close(requests[0]);
    say_start("run:g/3");
    hear_result("run:g/3");
    close(requests[1]);
    kill(worker.pid, SIGKILL);
    worker_wait(&worker);
}

static void a_job_of_another_stage_is_dropped(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    say_start("eval:g/0");
    uint64_t token = say_start("run:g/1");
    hear_result("run:g/1");
    say_ack("run:g/1", token);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_task_that_is_refused_ends_as_the_tasks_fault(void **state)
{
    (void)state;
    static const struct {
        const char *task, *why;
    } tasks[] = {{"{}", "task"}, {"[1,2", "task"}, {"{\"task\":\"t\",\"kind\":\"unheard-of\"}", "kind"}};
    struct worker_process worker = worker_start("run");
    open_lane(1);
    for (int i = 0; i < 3; i++) {
        say_start_as("run:g/0", ++next_token, tasks[i].task, NULL);
        const struct msg_job_result *result = hear_result("run:g/0");
        assert_true(slice_is(result->outcome, "task"));
        char detail[4097];
        snprintf(detail, sizeof(detail), "%.*s", SLICE_ARG(result->detail));
        assert_non_null(strstr(detail, tasks[i].why));
        say_ack("run:g/0", next_token);
    }
    assert_int_equal(worker_stop(&worker), 0);
}

static void ten_thousand_jobs_are_each_answered_once(void **state)
{
    (void)state;
    enum { JOBS = 10000, SLOTS = 64 };
    static bool seen[JOBS];
    memset(seen, 0, sizeof(seen));
    struct worker_process worker = worker_start("run", "--slots", "64");
    open_lane(1);
    int started = 0, ended = 0, repeated = 0;
    char job[40];
    int64_t begin_us = clock_us();
    while (ended < JOBS) {
        for (; started < JOBS && started - ended < SLOTS; started++) {
            snprintf(job, sizeof(job), "run:g/%d", started);
            say_start(job);
        }
        assert_true(hear(BOUND_MS));
        if (heard.id != MSG_job_result)
            continue;
        int number = -1;
        snprintf(job, sizeof(job), "%.*s", SLICE_ARG(heard.result.job));
        assert_int_equal(sscanf(job, "run:g/%d", &number), 1);
        repeated += seen[number];
        ended += !seen[number];
        seen[number] = true;
        say_ack(job, heard.result.token);
    }
    print_message("%d no-op jobs, %.0f jobs/s\n", JOBS, JOBS * 1e6 / (double)(clock_us() - begin_us));
    assert_true(repeated < JOBS / 10); /* only those whose acknowledgement took over 2 s */
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

/*
 * Of the messages that may be queued for the broker (64), ZeroMQ tells the worker each time when
 * half have left. Jobs are done until that has just been so and nothing else is to be sent.
 */
static void a_worker_that_waits_does_not_turn(void **state)
{
    (void)state;
    enum { TOLD_EACH = 32, TURNS_A_JOB = 20 };
    unsigned before = heard_count;
    struct worker_process worker = worker_start("run");
    open_lane(1);
    uint64_t progress = heard.beat.progress;
    while ((heard_count - before) % TOLD_EACH != 0) {
        char job[32];
        snprintf(job, sizeof(job), "run:g/%u", heard_count);
        say_start(job);
        assert_true(hear(BOUND_MS));
        if (heard.id == MSG_job_result)
            say_ack(job, heard.result.token);
    }
    hear_beat();
    assert_in_range(hear_beat()->progress, progress + 2, progress + TOLD_EACH * TURNS_A_JOB);
    assert_int_equal(worker_stop(&worker), 0);
}

/* ---- what comes over the lane is not trusted
 * ------------------------------------------------------ */

static void nonsense_on_the_lane_is_dropped_and_work_goes_on(void **state)
{
    (void)state;
    static char noise[5 << 20];
    struct worker_process worker = worker_start("run");
    open_lane(1);
    say_bytes("", 0, 0);
    say_bytes("\xff\x00nonsense", 10, 0);
    srand(11);
    for (int i = 0; i < 2000; i++) {
        size_t len = (size_t)rand() % 300;
        for (size_t k = 0; k < len; k++)
            noise[k] = (char)rand();
        say_bytes(noise, len, i % 5 == 0 ? ZMQ_SNDMORE : 0);
    }
    say_bytes("", 0, 0);
    say(MSG_status_get, &(struct msg_status_get){.tag = 1}); /* of another socket */
    uint64_t token = say_start("run:g/0");
    hear_result("run:g/0");
    say_ack("run:g/0", token);

    say_bytes(noise, sizeof(noise), 0); /* over the bound: the connection is cut and made again */
    for (int64_t end = clock_ms() + BOUND_MS;; assert_true(clock_ms() < end)) {
        say_start_as("run:g/1", 900, noop_task, NULL);
        hear_beat();
        if (beat_has("run:g/1"))
            break;
    }
    say_ack("run:g/1", 900);
    assert_int_equal(worker_stop(&worker), 0);
}

/* ---- the command line
 * ---------------------------------------------------------------------------------- */

static void a_wrong_command_line_ends_with_2(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"walk", NULL},
        {NULL, NULL},
        {"run", "--slots=0"},
        {"run", "--slots=many"},
        {"run", "--no-such"},
        {"run", "--lane-ports=30000-40000"},
        {"run", "--grace=-1"},
        {"run", "--lane-ports=9-1"},
        {"run", "eval"},
        {"run", "--advertise="},
        {"run", "--lane-ports=20000-"},
        {"run", "--grace=30"},
        {"run", "--outbox=64"},
        {"run", "--outbox=64KiB"},
        {"run", "--cgroup=on"},
        {"run", "--sandbox=soft"},
        {"run", "--json"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct worker_process worker = worker_launch(wrong[i][0], wrong[i][1], NULL);
        assert_int_equal(worker_wait(&worker), 2);
    }
}

static void each_failure_to_start_has_a_status_of_its_own(void **state)
{
    (void)state;
    struct worker_process worker = worker_launch("run", "--store", "/dev/null/store", NULL);
    assert_int_equal(worker_wait(&worker), 3);
    worker = worker_launch("run", "--broker", "carrier-pigeon", NULL);
    assert_int_equal(worker_wait(&worker), 5);
    const char *taken = strrchr(sink_endpoint, ':') + 1;
    worker = worker_launch("run", "--lane-ports", taken, NULL);
    assert_int_equal(worker_wait(&worker), 5);
}

static void help_names_every_option(void **state)
{
    (void)state;
    static const char *const options[] = {
#define OPTION(kind, name, value, ...) #name,
#include "workers/service/options.def"
#undef OPTION
    };
    char text[16384] = "";
    struct worker_process worker = worker_launch("--help", NULL);
    size_t len = 0;
    for (ssize_t count; (count = read(worker.out, text + len, sizeof(text) - 1 - len)) > 0;)
        len += (size_t)count;
    assert_int_equal(worker_wait(&worker), 0);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        char word[64];
        snprintf(word, sizeof(word), "\n  --%s", options[i]);
        for (char *at = word; (at = strchr(at, '_'));)
            *at = '-';
        assert_non_null(strstr(text, word));
    }
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        TEST(a_worker_says_it_is_ready_and_beats),
        TEST(a_worker_starts_before_its_broker_and_finds_it),
        TEST(lanes_and_sink_may_be_ipc),
        TEST(a_result_is_kept_and_listed_until_it_is_acknowledged),
        TEST(a_new_broker_gets_the_unacknowledged_results_at_once),
        TEST(a_running_job_outlives_its_broker),
        TEST(what_jobs_hold_on_an_engine_is_told_when_it_changes_and_to_each_new_broker),
        TEST(a_job_given_twice_is_done_once),
        TEST(a_running_job_given_again_is_answered_with_the_newer_token),
        TEST(a_finished_job_given_again_is_answered_and_not_done_again),
        TEST(a_cancelled_job_closes_its_requests_and_answers_nothing),
        TEST(a_cancelled_result_is_forgotten),
        TEST(a_worker_takes_no_more_jobs_than_it_has_slots),
        TEST(a_job_of_another_stage_is_dropped),
        TEST(a_task_that_is_refused_ends_as_the_tasks_fault),
        TEST(ten_thousand_jobs_are_each_answered_once),
        TEST(a_worker_that_waits_does_not_turn),
        TEST(nonsense_on_the_lane_is_dropped_and_work_goes_on),
        TEST(a_wrong_command_line_ends_with_2),
        TEST(each_failure_to_start_has_a_status_of_its_own),
        TEST(help_names_every_option),
    };
    return cmocka_run_group_tests_name("worker", tests, worker_clock_open, NULL);
}
