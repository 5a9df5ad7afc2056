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
                                            .task = slice_from_str(noop_task),
                                            .has_task = true};
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

/* ---- jobs that share a task ---- */

static void add(struct buffer *bundle, enum message_id id, const void *message)
{
    struct buffer bytes = encode(id, message);
    assert_true(bundle_add(bundle, buffer_peek(&bytes)));
    buffer_finish(&bytes);
}

static void add_task(struct buffer *bundle, const char *group, const char *task, const char *layer)
{
    add(bundle, MSG_job_task,
        &(struct msg_job_task){.group = slice_from_str(group),
                               .task = slice_from_str(task),
                               .init_layer_digest = slice_from_str(layer),
                               .has_init_layer_digest = layer != NULL});
}

/* Those of the numbers from..to - 1, without a task. */
static void add_starts(struct buffer *bundle, const char *group, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        char job[32];
        snprintf(job, sizeof(job), "run:%s/%u", group, i);
        add(bundle, MSG_job_start,
            &(struct msg_job_start){.job = slice_from_str(job),
                                    .token = ++next_token,
                                    .stage = slice_from_str("run"),
                                    .group = slice_from_str(group),
                                    .sample = i,
                                    .attempt = 1,
                                    .engine = slice_from_str(silent_url),
                                    .has_engine = true});
    }
}

static void say_bundle(struct buffer *bundle)
{
    say_bytes(bundle->data, bundle->len, 0);
    buffer_finish(bundle);
}

/* Their results, each of that outcome, with that in its detail. */
static void hear_outcomes(const char *group, unsigned from, unsigned to, const char *outcome, const char *detail)
{
    unsigned come = 0; /* a bit for each */
    for (unsigned count = from; count < to; count++) {
        char job[32], name[32];
        const struct msg_job_result *result = hear_result(NULL);
        snprintf(job, sizeof(job), "%.*s", SLICE_ARG(result->job));
        const unsigned i = (unsigned)atoi(strchr(job, '/') + 1);
        snprintf(name, sizeof(name), "run:%s/%u", group, i);
        assert_string_equal(job, name);
        assert_in_range(i, from, to - 1);
        assert_false(come & 1u << i);
        come |= 1u << i;
        if (!slice_is(result->outcome, outcome) ||
            !memmem(result->detail.data, result->detail.len, detail, strlen(detail)))
            fail_msg("%s: %.*s: %.*s", job, SLICE_ARG(result->outcome), SLICE_ARG(result->detail));
        say_ack(job, next_token);
    }
}

static struct worker_process start_sharing(void)
{
    struct worker_process worker = worker_start("run", "--slots", "64");
    connect_lane(hear_beat()->lane);
    assert_true(heard.beat.has_shares_tasks && heard.beat.shares_tasks);
    say_hello_with(1, true);
    hear_beat_until(heard.beat.epoch == 1);
    return worker;
}

static void jobs_without_a_task_have_that_which_came_before_them(void **state)
{
    (void)state;
    struct buffer bundle = {0};
    struct worker_process worker = start_sharing();
    add_task(&bundle, "a", noop_task, NULL);
    add_starts(&bundle, "a", 0, 8);
    add_task(&bundle, "b", "{\"task\":\"t\",\"kind\":\"unheard\",\"prompt\":\"p\"}", NULL);
    add_starts(&bundle, "b", 0, 2);
    say_bundle(&bundle);
    hear_outcomes("a", 0, 8, "ok", "");
    hear_outcomes("b", 0, 2, "task", "kind must be one of");
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

static void each_job_of_a_shared_task_that_is_refused_says_so(void **state)
{
    (void)state;
    struct buffer bundle = {0};
    struct worker_process worker = start_sharing();
    add_task(&bundle, "a", "{\"task\":7}", NULL);
    add_starts(&bundle, "a", 0, 3);
    say_bundle(&bundle);
    hear_outcomes("a", 0, 3, "task", "the task is refused: task");
    assert_int_equal(worker_stop(&worker), 0);
}

static void jobs_have_the_layer_of_the_task_that_they_share(void **state)
{
    (void)state;
    static const char task[] = "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"}}";
    struct buffer bundle = {0};
    struct worker_process worker = start_sharing();
    add_task(&bundle, "a", task, "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    add_starts(&bundle, "a", 0, 2);
    say_bundle(&bundle);
    hear_outcomes("a", 0, 2, "infra", "0123456789abcdef");
    assert_int_equal(worker_stop(&worker), 0);
}

/* What is started now writes its log there. */
static void keep_words(void)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/words", directory);
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    close(file);
}

static void assert_words(const char *words)
{
    char path[160], said[8192] = "";
    snprintf(path, sizeof(path), "%s/words", directory);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && read(file, said, sizeof(said) - 1) > 0);
    close(file);
    if (!strstr(said, words))
        fail_msg("%s: %s", words, said);
}

/* What they would share is of another group, or was of another message: none is held, so the broker gives it anew. */
static void a_job_whose_task_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    struct buffer bundle = {0};
    const int own_words = dup(STDERR_FILENO);
    keep_words();
    struct worker_process worker = start_sharing();
    dup2(own_words, STDERR_FILENO);
    close(own_words);
    add_starts(&bundle, "a", 0, 1);
    add_task(&bundle, "b", noop_task, NULL);
    add_starts(&bundle, "a", 1, 2);
    add_starts(&bundle, "b", 0, 1);
    say_bundle(&bundle);
    add_starts(&bundle, "b", 1, 2);
    add_starts(&bundle, "b", 2, 3);
    say_bundle(&bundle);
    hear_outcomes("b", 0, 1, "ok", "");
    for (int beats = 0; beats < 2; beats++) /* with the second it has said what was refused before the first */
        hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
    assert_words(
        "count=4 reason=missing-field field=task why=\"job.start: run:b/2 has no task, and no job.task of b is "
        "before it\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_of_a_turn_come_as_one),
        TEST(a_result_of_a_turn_of_its_own_comes_as_it_is),
        TEST(a_broker_that_says_nothing_of_bundles_gets_none),
        TEST(a_broker_of_an_earlier_release_that_comes_back_gets_results_alone_once_it_has_said_hello),
        TEST(jobs_without_a_task_have_that_which_came_before_them),
        TEST(each_job_of_a_shared_task_that_is_refused_says_so),
        TEST(jobs_have_the_layer_of_the_task_that_they_share),
        TEST(a_job_whose_task_is_not_there_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
