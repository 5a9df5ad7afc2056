/* A cache that is removed, replaced or covered under a working worker. */
#include "tests/workers/service/worker_harness.h"

#include <sys/mount.h>

static const char sleeping[] = "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"sleep 600\"]}";
static const char writing[] = "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"echo x > f\"]}";
static char cache[160];

/* One with a job whose sandbox is at work. */
static struct worker_process start_busy(uint64_t *token)
{
    struct worker_process worker = worker_start("init");
    snprintf(cache, sizeof(cache), "%s/data/cache", directory);
    open_lane(1);
    *token = say_start_as("init:g", ++next_token, sleeping, NULL);
    hear_beat_until(beat_has("init:g") && heard.beat.sandboxes == 1);
    return worker;
}

/* The same process is another worker, and its sandboxes work. */
static void expect_anew(struct worker_process *worker, uint64_t token, const char *why)
{
    char words[300], id[129];
    snprintf(id, sizeof(id), "%.*s", SLICE_ARG(heard.beat.worker));
    snprintf(words, sizeof(words), "%s %s", cache, why);
    const struct msg_job_result *result = hear_result("init:g");
    assert_true(slice_is(result->outcome, "cancelled")); /* handed out elsewhere at once */
    say_ack("init:g", token);
    worker_hear(worker);
    assert_memory_equal(worker->said, "worker ready", 12);
    hear_beat_until(!slice_is(heard.beat.worker, id));
    assert_false(heard.beat.draining);
    assert_true(heard.beat.has_node_error);
    if (heard.beat.node_error.len < strlen(words) || memcmp(heard.beat.node_error.data, words, strlen(words)) != 0)
        fail_msg("node_error: %.*s", SLICE_ARG(heard.beat.node_error));
    assert_int_equal(kill(worker->pid, 0), 0);
    zmq_close(lane);
    open_lane(1);
    token = say_start_as("init:h", ++next_token, writing, NULL);
    result = hear_result("init:h");
    if (!slice_is(result->outcome, "ok"))
        fail_msg("%.*s", SLICE_ARG(result->detail));
    say_ack("init:h", token);
    assert_int_equal(worker_stop(worker), 0);
}

static void remove_cache(void)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s'", cache);
    assert_int_equal(system(command), 0);
}

static void a_worker_whose_cache_was_removed_gives_its_jobs_back_and_begins_anew(void **state)
{
    (void)state;
    uint64_t token;
    struct worker_process worker = start_busy(&token);
    remove_cache();
    expect_anew(&worker, token, "was removed");
}

static void a_worker_whose_cache_was_replaced_gives_its_jobs_back_and_begins_anew(void **state)
{
    (void)state;
    uint64_t token;
    char aside[200];
    struct worker_process worker = start_busy(&token);
    snprintf(aside, sizeof(aside), "%s.aside", cache);
    assert_int_equal(rename(cache, aside), 0);
    assert_int_equal(mkdir(cache, 0755), 0);
    expect_anew(&worker, token, "was replaced by another directory");
}

static void a_worker_whose_cache_was_covered_by_a_mount_gives_its_jobs_back_and_begins_anew(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    uint64_t token;
    struct worker_process worker = start_busy(&token);
    assert_int_equal(mount("tmpfs", cache, "tmpfs", 0, NULL), 0);
    expect_anew(&worker, token, "is on another file system now");
    assert_int_equal(umount2(cache, MNT_DETACH), 0);
}

static void a_worker_that_is_told_to_end_while_its_cache_is_gone_ends(void **state)
{
    (void)state;
    uint64_t token;
    struct worker_process worker = start_busy(&token);
    kill(worker.pid, SIGTERM);
    hear_beat_until(heard.beat.draining);
    remove_cache();
    assert_true(slice_is(hear_result("init:g")->outcome, "cancelled"));
    say_ack("init:g", token);
    assert_int_equal(worker_wait(&worker), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_whose_cache_was_removed_gives_its_jobs_back_and_begins_anew),
        TEST(a_worker_whose_cache_was_replaced_gives_its_jobs_back_and_begins_anew),
        TEST(a_worker_whose_cache_was_covered_by_a_mount_gives_its_jobs_back_and_begins_anew),
        TEST(a_worker_that_is_told_to_end_while_its_cache_is_gone_ends),
    };
    return cmocka_run_group_tests_name("worker_cache", tests, NULL, NULL);
}
