#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/sluice.h"
#include "tests/client/fake_broker.h"

static const char task[] = "{\"task\":\"add\",\"kind\":\"noop\",\"prompt\":\"1+1?\",\"samples\":3}";

struct fixture {
    struct fake_broker *broker;
    struct sluice_client *client;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->broker = fake_start();
    f->client = sluice_connect(fake_url(f->broker));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sluice_close(&f->client);
    fake_stop(&f->broker);
    free(f);
    return 0;
}

static void a_submit_repeated_is_the_same_group(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sluice_submit(f->client, "g", "train", 2, task), 0);
    assert_int_equal(sluice_submit(f->client, "g", "train", 2, task), 0);
    assert_int_equal(fake_groups(f->broker), 1);
    assert_int_equal(sluice_submit(f->client, "g", "train", 3, task), -EEXIST);
    assert_string_equal(sluice_error(f->client), "the name is taken");
}

static void metrics_come_in_both_formats_or_with_why_not(void **state)
{
    struct fixture *f = *state;
    const char *text;
    assert_int_equal(sluice_metrics(f->client, false, &text), 0);
    assert_string_equal(text, "sluice_epoch 1\n");
    assert_int_equal(sluice_metrics(f->client, true, &text), 0);
    assert_string_equal(text, "sluice_epoch 1\n# EOF\n");
    fake_refuse_one(f->broker, MSG_metrics_get, REFUSAL_NOT_ALLOWED, "only an admin may send metrics.get");
    assert_int_equal(sluice_metrics(f->client, false, &text), -EACCES);
    assert_string_equal(sluice_error(f->client), "only an admin may send metrics.get");
}

static void a_submit_whose_answer_was_lost_is_sent_again(void **state)
{
    struct fixture *f = *state;
    fake_ignore(f->broker, 2);
    assert_int_equal(sluice_submit(f->client, "g", "train", 2, task), 0);
    assert_int_equal(fake_count(f->broker, MSG_group_submit), 3);
    assert_int_equal(fake_groups(f->broker), 1);
}

static void no_samples_means_the_tasks_own(void **state)
{
    struct fixture *f = *state;
    struct sluice_group group = {.group = "g", .stream = "train", .task_json = task};
    assert_int_equal(sluice_submit_many(f->client, &group, 1), 0);
    assert_int_equal(group.accepted, 3);
    group.task_json = "{\"task\":";
    assert_int_equal(sluice_submit_many(f->client, &group, 1), -EINVAL);
}

static void many_submits_each_have_their_result(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 300 };
    struct sluice_group groups[COUNT];
    char names[COUNT][16];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), i == 70 ? "a/b" : "g%u", i);
        groups[i] = (struct sluice_group){
            .group = names[i], .stream = "train", .task_json = task, .samples = i == 9 ? 5000 : 1};
    }
    assert_int_equal(sluice_submit(f->client, "g100", "train", 9, task), 0);
    assert_int_equal(sluice_submit(f->client, "g200", "train", 1, task), 0);
    assert_int_equal(sluice_submit_many(f->client, groups, COUNT), -EINVAL);
    assert_non_null(strstr(sluice_error(f->client), "samples is 5000; the maximum is 1024"));
    assert_int_equal(groups[9].result, -EINVAL);
    assert_int_equal(groups[100].result, -EEXIST);
    assert_int_equal(groups[0].result, 0);
    assert_false(groups[0].known);
    assert_true(groups[200].known);
    assert_int_equal(groups[299].result, 0);
}

static void a_submit_carries_its_priority_and_lease_or_none(void **state)
{
    struct fixture *f = *state;
    struct sluice_group group = {.group = "g", .stream = "train", .task_json = task, .samples = 1};
    assert_int_equal(sluice_submit_many(f->client, &group, 1), 0);
    assert_string_equal(fake_last_options(f->broker), "priority=- lease_ms=-");
    group.has_priority = true;
    group.lease_ms = 60000;
    assert_int_equal(sluice_submit_many(f->client, &group, 1), 0);
    assert_string_equal(fake_last_options(f->broker), "priority=0 lease_ms=60000");
    group.priority = 10;
    assert_int_equal(sluice_submit_many(f->client, &group, 1), -EINVAL);
    assert_non_null(strstr(sluice_error(f->client), "priority is 10; the maximum is 9"));
    group.priority = 7;
    group.has_priority = false;
    assert_int_equal(sluice_submit_many(f->client, &group, 1), -EINVAL);
    assert_non_null(strstr(sluice_error(f->client), "has_priority is not set"));
}

static void a_warning_is_the_last_submits(void **state)
{
    struct fixture *f = *state;
    fake_warn(f->broker, "nearly full");
    assert_int_equal(sluice_submit(f->client, "g", "train", 1, task), 0);
    assert_string_equal(sluice_warning(f->client), "nearly full");
    fake_warn(f->broker, "");
    assert_int_equal(sluice_submit(f->client, "h", "train", 1, task), 0);
    assert_string_equal(sluice_warning(f->client), "");
}

static void a_full_broker_is_waited_for(void **state)
{
    struct fixture *f = *state;
    fake_be_full(f->broker, 3);
    assert_int_equal(sluice_submit(f->client, "g", "train", 1, task), 0);
    assert_string_equal(sluice_error(f->client), "");
    assert_int_equal(fake_count(f->broker, MSG_group_submit), 4);
}

static void a_full_broker_is_waited_for_no_longer_than_patience_says(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 100 };
    struct sluice_group groups[COUNT];
    char names[COUNT][16];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "g%u", i);
        groups[i] = (struct sluice_group){.group = names[i], .stream = "train", .task_json = task, .samples = 1};
    }
    fake_be_full(f->broker, 1000000);
    sluice_set_patience(f->client, 90);
    assert_int_equal(sluice_submit_many(f->client, groups, COUNT), -EAGAIN);
    assert_string_equal(sluice_error(f->client), "too many are queued");
    assert_int_equal(groups[0].result, -EAGAIN);
    assert_int_equal(groups[0].retry_after_ms, 20);
    assert_int_equal(groups[99].result, -ECANCELED);
    unsigned asked = fake_count(f->broker, MSG_group_submit);
    assert_in_range(asked, 2 * 64, 5 * 64);
    fake_be_full(f->broker, 0);
    assert_int_equal(sluice_submit_many(f->client, groups, COUNT), 0);
}

static void what_can_never_fit_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    fake_refuse_for_good(f->broker, REFUSAL_QUEUE_FULL, "more than ever fits");
    assert_int_equal(sluice_submit(f->client, "g", "train", 1, task), -ENOSPC);
    assert_string_equal(sluice_error(f->client), "more than ever fits");
    assert_int_equal(fake_count(f->broker, MSG_group_submit), 1);
}

static void a_disk_that_is_low_is_waited_for(void **state)
{
    struct fixture *f = *state;
    fake_refuse(f->broker, REFUSAL_DISK_LOW, "the disk is low");
    assert_int_equal(sluice_submit(f->client, "g", "train", 1, task), 0);
    assert_int_equal(fake_count(f->broker, MSG_group_submit), 2);
}

static void a_full_broker_says_when_to_try_again(void **state)
{
    struct fixture *f = *state;
    struct sluice_group group = {.group = "g", .stream = "train", .task_json = task, .samples = 1};
    sluice_set_patience(f->client, 0);
    fake_be_full(f->broker, 1);
    assert_int_equal(sluice_submit_many(f->client, &group, 1), -EAGAIN);
    assert_int_equal(group.retry_after_ms, 20);
    assert_int_equal(sluice_submit_many(f->client, &group, 1), 0);
}

static void what_is_refused_for_good_is_told_before_a_full_broker(void **state)
{
    struct fixture *f = *state;
    struct sluice_group groups[] = {{.group = "new", .stream = "train", .task_json = task, .samples = 1},
                                    {.group = "taken", .stream = "train", .task_json = task, .samples = 2}};
    assert_int_equal(sluice_submit(f->client, "taken", "train", 1, task), 0);
    fake_be_full(f->broker, 1);
    assert_int_equal(sluice_submit_many(f->client, groups, 2), -EEXIST);
    assert_string_equal(sluice_error(f->client), "the name is taken");
    assert_int_equal(groups[0].result, -EAGAIN);
    assert_int_equal(groups[1].result, -EEXIST);
}

static void each_refusal_is_its_errno_and_the_brokers_sentence(void **state)
{
    static const struct {
        enum refusal_reason reason;
        int code;
    } cases[] = {
        {REFUSAL_QUEUE_FULL, -EAGAIN},     {REFUSAL_GROUP_EXISTS, -EEXIST},    {REFUSAL_UNKNOWN_ROLLOUT, -ENOENT},
        {REFUSAL_UNKNOWN_STREAM, -ENOENT}, {REFUSAL_UNKNOWN_GROUP, -ENOENT},   {REFUSAL_UNKNOWN_ENGINE, -ENOENT},
        {REFUSAL_FORGOTTEN, -ENODATA},     {REFUSAL_NO_ENGINE, -EHOSTUNREACH}, {REFUSAL_BAD_TASK, -EINVAL},
        {REFUSAL_TOO_LARGE, -EINVAL},      {REFUSAL_UNKNOWN_MESSAGE, -EPROTO}, {REFUSAL_AMBIGUOUS, -EINVAL},
        {REFUSAL_NOT_ALLOWED, -EACCES},    {REFUSAL_DISK_LOW, -EAGAIN},        {REFUSAL_UNKNOWN_WORKER, -ENOENT},
        {REFUSAL_BACKUP_FAILED, -EIO},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fake_refuse(f->broker, cases[i].reason, "because \xc3\xa9");
        assert_int_equal(sluice_engine_add(f->client, "http://e:1"), cases[i].code);
        assert_string_equal(sluice_error(f->client), "because \xc3\xa9");
    }
    assert_int_equal(sluice_engine_add(f->client, "http://e:1"), 0);
    assert_string_equal(sluice_error(f->client), "");
}

static void one_rollout_is_a_trajectory_a_state_or_unknown(void **state)
{
    struct fixture *f = *state;
    const struct sluice_trajectory *trajectory;
    const char *words;
    fake_add(f->broker, false);
    assert_int_equal(sluice_get(f->client, "g/0", &trajectory, &words), 0);
    assert_non_null(trajectory);
    assert_null(words);
    assert_string_equal(trajectory->rollout, "g/0");
    assert_int_equal(sluice_get(f->client, "waiting/0", &trajectory, &words), 0);
    assert_null(trajectory);
    assert_string_equal(
        words, "run leased, attempt 2, worker w7, turn 3, last tool bash; http://gpu1:8000: HTTP 503; tried 2 times");
    assert_int_equal(sluice_get(f->client, "none/0", &trajectory, &words), -ENOENT);
    assert_null(words);
}

static void the_small_requests_are_carried_out(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;
    assert_int_equal(sluice_cancel(f->client, NULL, "g", NULL, &count), 0);
    assert_int_equal(count, 3);
    const char *moved_from = "?";
    assert_int_equal(sluice_engine_add_with(f->client, "http://e:1", 64), 0);
    assert_int_equal(sluice_engine_move(f->client, "http://e:1", 0, NULL, &moved_from), 0);
    assert_null(moved_from);
    assert_int_equal(sluice_engine_move(f->client, "http://e:1", 0, "critic", &moved_from), 0);
    assert_string_equal(moved_from, "default");
    assert_int_equal(sluice_engine_drain(f->client, "http://e:1", &count), 0);
    assert_int_equal(sluice_engine_remove(f->client, "http://e:1"), 0);
    assert_int_equal(sluice_ack(f->client, "train", 41), 0);
    assert_int_equal(fake_acked(f->broker), 41);
    assert_int_equal(sluice_engine_add(f->client, "x"), -EINVAL);
    assert_non_null(strstr(sluice_error(f->client), "url is 1 bytes; the minimum is 8"));
}

static void a_pause_that_does_not_come_true_is_taken_back(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;
    unsigned before = fake_count(f->broker, MSG_policy_resume);
    assert_int_equal(sluice_policy_set(f->client, "step-7", NULL), 0);
    assert_int_equal(sluice_policy_set(f->client, "step-7", "http://e:1"), 0);
    assert_int_equal(sluice_policy_pause(f->client, "finish", NULL, 60000, 200), -ETIMEDOUT);
    assert_string_equal(sluice_error(f->client), "3 calls or workers did not stop in time; the pause "
                                                 "was taken back");
    assert_in_range(fake_count(f->broker, MSG_policy_pause), 2, 10);
    assert_int_equal(fake_count(f->broker, MSG_policy_resume), before + 1);
    assert_int_equal(sluice_policy_resume(f->client, NULL, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(sluice_policy_pause(f->client, "finish", NULL, 10, 200), -EINVAL);
}

static void leases_are_renewed_and_workers_drained(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;
    assert_int_equal(sluice_renew(f->client, "train", &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(fake_count(f->broker, MSG_stream_renew), 1);
    assert_int_equal(sluice_drain(f->client, "w7", NULL, -1, &count), 0);
    assert_string_equal(fake_last_options(f->broker), "grace_s=- is_host=0");
    assert_int_equal(sluice_drain(f->client, NULL, "node7", 0, NULL), 0);
    assert_string_equal(fake_last_options(f->broker), "grace_s=0 is_host=1");
    fake_refuse(f->broker, REFUSAL_UNKNOWN_WORKER, "no such worker");
    assert_int_equal(sluice_drain(f->client, "w8", NULL, 5, NULL), -ENOENT);
}

static void a_back_up_is_asked_for_once(void **state)
{
    struct fixture *f = *state;
    uint64_t bytes = 0;
    fake_count_done(f->broker, 4711);
    assert_int_equal(sluice_backup(f->client, "monday", &bytes), 0);
    assert_int_equal(bytes, 4711);
    fake_ignore(f->broker, 1);
    sluice_set_timeout(f->client, 1200);
    assert_int_equal(sluice_backup(f->client, "monday", &bytes), -ETIMEDOUT);
    assert_int_equal(fake_count(f->broker, MSG_ledger_backup), 2);
    fake_refuse(f->broker, REFUSAL_BACKUP_FAILED, "the disk is full");
    assert_int_equal(sluice_backup(f->client, "monday", &bytes), -EIO);
    assert_string_equal(sluice_error(f->client), "the disk is full");
}

/* The child: one request with a timeout of a second, to the broker whose URL comes down the pipe. */
static int ask_status(int from)
{
    char url[64] = "";
    const char *json;
    if (read(from, url, sizeof(url) - 1) <= 0)
        return 1;
    struct sluice_client *client = sluice_connect(url);
    sluice_set_timeout(client, 1000);
    int failed = sluice_status(client, &json);
    sluice_close(&client);
    return failed ? 2 : 0;
}

static void time_in_which_the_process_stood_still_does_not_count(void **state)
{
    (void)state;
    int pipe_fds[2], status;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork(); /* before there are threads */
    if (child == 0)
        _exit(ask_status(pipe_fds[0]));
    struct fake_broker *broker = fake_start();
    fake_ignore(broker, 1);
    assert_true(write(pipe_fds[1], fake_url(broker), strlen(fake_url(broker)) + 1) > 0);
    while (fake_count(broker, MSG_status_get) == 0)
        poll(NULL, 0, 1);
    kill(child, SIGSTOP);
    poll(NULL, 0, 3000);
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(fake_count(broker, MSG_status_get), 2);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    fake_stop(&broker);
}

static void a_request_waits_for_a_broker_that_restarts(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sluice_engine_add(f->client, "http://e:1"), 0);
    fake_restart(f->broker, false);
    assert_int_equal(sluice_engine_add(f->client, "http://e:2"), 0);
}

static void an_answer_to_another_question_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct sluice_trajectory *trajectory;
    const char *words;
    fake_answer_done(f->broker);
    assert_int_equal(sluice_status(f->client, &words), -EPROTO);
    assert_string_equal(sluice_error(f->client), "the broker answered with done");
    fake_answer_done(f->broker);
    assert_int_equal(sluice_get(f->client, "g/0", &trajectory, &words), -EPROTO);
    fake_answer_done(f->broker);
    assert_int_equal(sluice_submit(f->client, "g", "train", 1, task), -EPROTO);
    assert_int_equal(sluice_submit(f->client, "g", "train", 1, task), 0);
}

static void no_broker_is_a_timeout_that_says_where(void **state)
{
    (void)state;
    struct sluice_client *client = sluice_connect("tcp://127.0.0.1:9");
    sluice_set_timeout(client, 50);
    const char *json;
    assert_int_equal(sluice_status(client, &json), -ETIMEDOUT);
    assert_string_equal(sluice_error(client), "no broker answers at tcp://127.0.0.1:9");
    assert_true(sluice_is_silent(client));
    assert_int_equal(sluice_set_key(client, "/a/key"), -EBUSY);
    assert_false(sluice_is_silent(client));
    sluice_close(&client);
    assert_null(client);
    sluice_close(&client);
}

static void an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "127.0.0.1:5750", "tcp://host",   "tcp://host:",      "tcp://host:0", "tcp://host:65535",
        "tcp://host:57x", "ipc:///tmp/x", "http://host:5750", "tcp://"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
        struct sluice_client *client = sluice_connect(urls[i]);
        const char *json;
        assert_int_equal(sluice_status(client, &json), -EINVAL);
        assert_non_null(strstr(sluice_error(client), "is not a broker's URL"));
        sluice_close(&client);
    }
}

static void the_default_address_comes_from_the_environment(void **state)
{
    (void)state;
    setenv("SLUICE_BROKER", "tcp://there:1234", 1);
    struct sluice_client *client = sluice_connect(NULL);
    assert_string_equal(sluice_url(client), "tcp://there:1234");
    sluice_close(&client);
    unsetenv("SLUICE_BROKER");
    client = sluice_connect(NULL);
    assert_string_equal(sluice_url(client), "tcp://127.0.0.1:5750");
    sluice_close(&client);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_submit_repeated_is_the_same_group),
        CASE(metrics_come_in_both_formats_or_with_why_not),
        CASE(a_submit_whose_answer_was_lost_is_sent_again),
        CASE(no_samples_means_the_tasks_own),
        CASE(many_submits_each_have_their_result),
        CASE(a_submit_carries_its_priority_and_lease_or_none),
        CASE(a_warning_is_the_last_submits),
        CASE(a_full_broker_is_waited_for),
        CASE(a_full_broker_is_waited_for_no_longer_than_patience_says),
        CASE(what_can_never_fit_is_refused_at_once),
        CASE(a_disk_that_is_low_is_waited_for),
        CASE(a_pause_that_does_not_come_true_is_taken_back),
        CASE(leases_are_renewed_and_workers_drained),
        CASE(a_back_up_is_asked_for_once),
        CASE(a_full_broker_says_when_to_try_again),
        CASE(what_is_refused_for_good_is_told_before_a_full_broker),
        CASE(each_refusal_is_its_errno_and_the_brokers_sentence),
        CASE(one_rollout_is_a_trajectory_a_state_or_unknown),
        CASE(the_small_requests_are_carried_out),
        CASE(a_request_waits_for_a_broker_that_restarts),
        CASE(an_answer_to_another_question_is_refused),
        cmocka_unit_test(time_in_which_the_process_stood_still_does_not_count),
        cmocka_unit_test(no_broker_is_a_timeout_that_says_where),
        cmocka_unit_test(an_address_that_is_none_is_refused),
        cmocka_unit_test(the_default_address_comes_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
