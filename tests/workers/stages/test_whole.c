/* What a stage came to is believed only where its sandbox, and what that stands on, is whole at the end. */
#include "tests/workers/stages/kinds_world.h"
#include "tests/workers/layers/file_clock.h"

#include <signal.h>

#include "common/files/dirtree_remove.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/spawner_start.h"
#include "workers/jobs/cache_watch.h"
#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/cgroup/starved.h"

/* ---- something that happens while a command runs ------------------------------------------- */

enum { HARM_MS = 30000, SEEN_MAX = 4096 };

static void (*harm)(void);

/* A process that the spawner, or what it started, has under this name; 0: none. */
static pid_t find_inside(const char *name)
{
    static pid_t pids[SEEN_MAX];
    AUTO_CLOSE int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t count = proc_tree(proc, spawner_pid(spawner), pids, SEEN_MAX);
    for (size_t i = 0; i < count; i++) {
        char path[64], comm[32] = "";
        snprintf(path, sizeof(path), "%d/comm", pids[i]);
        AUTO_CLOSE int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, comm, sizeof(comm) - 1) > 0 && strncmp(comm, name, strlen(name)) == 0)
            return pids[i];
    }
    return 0;
}

/* The command waits in a sleep, which then ends: what comes after it is run by a shell that is there already. */
static void do_harm(void *arg)
{
    int64_t until_ms = clock_ms() + HARM_MS;
    pid_t sleep;
    (void)arg;
    while ((sleep = find_inside("sleep")) == 0) {
        assert_true(clock_ms() < until_ms);
        await_sleep(5);
    }
    harm();
    kill(sleep, SIGTERM);
}

static struct job run_harmed(enum stage stage, const char *json, const struct layer *init, void (*what)(void))
{
    int64_t until_ms = clock_ms() + HARM_MS;
    harm = what;
    while (find_inside("sleep") != 0) { /* of the sandbox before */
        assert_true(clock_ms() < until_ms);
        await_sleep(5);
    }
    assert_non_null(fiber_start(loop, do_harm, NULL, NULL));
    return run_stage(stage, json, init, NULL, NULL);
}

static void expect_not_believed(enum stage stage, const char *json, void (*what)(void), enum fault fault,
                                const char *words)
{
    struct job init = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    expect(&init, OUTCOME_OK, "");
    struct job job = run_harmed(stage, json, &init.result.layer, what);
    expect(&job, OUTCOME_INFRA, words);
    assert_false(job.result.verdict.has_reward);
    assert_string_equal(job.result.layer.digest, "");
    if (job.result.fault != fault)
        fail_msg("%s is blamed on \"%s\"", job.result.detail, fault_wire(job.result.fault));
    end_job(&job);
    end_job(&init);
}

#define WAITS "sleep 777; exit 1"
#define TASK(more)                                                                                                     \
    "{\"task\":\"t\",\"prompt\":\"" WAITS "\",\"files\":{\"keep\":\"x\"},"                                             \
    "\"eval\":{\"kind\":\"command\",\"command\":\"" WAITS "\"}" more "}"

static void nothing(void) {}

FIBER_TEST(what_was_not_harmed_is_believed)
{
    struct job init = run_stage(STAGE_INIT, TASK(""), NULL, NULL, NULL);
    struct job eval = run_harmed(STAGE_EVAL, TASK(""), &init.result.layer, nothing);
    expect(&eval, OUTCOME_OK, "exited with 1");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 0.0);
    end_job(&eval);
    struct job run = run_harmed(STAGE_RUN, TASK(""), &init.result.layer, nothing);
    expect(&run, OUTCOME_OK, "ended by itself");
    end_job(&run);
    end_job(&init);
}

/* ---- layers, image, cache ------------------------------------------------------------------- */

static struct cache_watch watch;

static void remove_cache(void) { assert_int_equal(dirtree_remove(cache), 0); }

static void remake_cache(void)
{
    if (mkdir(cache, 0755) < 0)
        assert_int_equal(errno, EEXIST);
}

FIBER_TEST(a_verdict_over_layers_that_were_removed_is_none)
{
    expect_not_believed(STAGE_EVAL, TASK(""), remove_cache, FAULT_NODE, "is not there any more, or is another one");
    remake_cache();
    expect_not_believed(STAGE_RUN, TASK(""), remove_cache, FAULT_NODE, "is not there any more, or is another one");
    remake_cache();
}

/* Of all layers that are unpacked: init's "keep", and what is the evaluator's own. */
static void remove_within(const char *glob)
{
    char command[300];
    file_clock_tick(directory);
    snprintf(command, sizeof(command), "rm %s/%s", cache, glob);
    assert_int_equal(system(command), 0);
}

static void remove_kept(void) { remove_within("*/root/workspace/keep"); }
static void remove_expected(void) { remove_within("own.tmp.*/root/eval/expected"); }

FIBER_TEST(a_verdict_over_a_layer_that_a_file_went_from_is_none_and_the_next_has_it_again)
{
    expect_not_believed(STAGE_EVAL, TASK(""), remove_kept, FAULT_NODE, "workspace has other entries");
    expect_not_believed(STAGE_RUN, TASK(""), remove_kept, FAULT_NODE, "workspace has other entries");
    struct job init = run_stage(STAGE_INIT, TASK(""), NULL, NULL, NULL);
    struct job run = run_harmed(STAGE_RUN, TASK(""), &init.result.layer, nothing);
    expect(&run, OUTCOME_OK, "ended by itself");
    end_job(&run);
    end_job(&init);
}

FIBER_TEST(a_verdict_without_the_evaluators_own_files_is_none)
{
    expect_not_believed(STAGE_EVAL,
                        "{\"task\":\"t\",\"prompt\":\"p\",\"files\":{\"keep\":\"x\"},"
                        "\"eval\":{\"kind\":\"command\",\"command\":\"" WAITS
                        "\",\"files\":{\"/eval/expected\":\"y\"}}}",
                        remove_expected, FAULT_NODE, "eval has other entries");
}

/* A sandbox that copies layers takes rights for itself where there are none. */
FIBER_TEST(layers_with_directories_that_nobody_may_enter_are_believed)
{
    static const char json[] = "{\"task\":\"t\",\"prompt\":\"" WAITS "\",\"setup\":["
                               "\"mkdir -p a/b c d; echo x > a/b/f; echo x > c/g; ln c/g d/h; "
                               "chmod 0500 a/b; chmod 0 a c; chmod 0300 d\"],"
                               "\"eval\":{\"kind\":\"command\",\"command\":\"" WAITS "\"}}";
    struct job init = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    struct job run = run_harmed(STAGE_RUN, json, &init.result.layer, nothing);
    expect(&run, OUTCOME_OK, "ended by itself");
    struct job eval = run_harmed(STAGE_EVAL, json, &init.result.layer, nothing);
    expect(&eval, OUTCOME_OK, "exited with 1");
    end_job(&eval), end_job(&run), end_job(&init);
}

static void replace_cache(void)
{
    char gone[200];
    snprintf(gone, sizeof(gone), "%s.gone", cache);
    assert_int_equal(rename(cache, gone), 0);
    remake_cache();
}

static void put_cache_back(void)
{
    char gone[200];
    snprintf(gone, sizeof(gone), "%s.gone", cache);
    assert_int_equal(dirtree_remove(cache), 0);
    assert_int_equal(rename(gone, cache), 0);
}

FIBER_TEST(a_verdict_in_a_cache_that_was_replaced_is_none_where_no_layer_was_used_either)
{
    static const char bare[] = "{\"task\":\"t\",\"prompt\":\"" WAITS
                               "\",\"eval\":{\"kind\":\"command\",\"command\":\"" WAITS "\"}}";
    struct fail fail = {0};
    assert_int_equal(cache_watch_open(&watch, cache, NULL, &fail), 0);
    context.cache_watch = &watch;
    expect_not_believed(STAGE_EVAL, bare, replace_cache, FAULT_NODE, "was replaced by another directory");
    put_cache_back();
    assert_int_equal(cache_watch_look(&watch, &fail), 0);
    cache_watch_close(&watch);
}

FIBER_TEST(a_set_up_that_fails_over_a_cache_that_was_removed_is_not_the_tasks_fault)
{
    struct fail fail = {0};
    assert_int_equal(cache_watch_open(&watch, cache, NULL, &fail), 0);
    context.cache_watch = &watch;
    struct job job = run_harmed(STAGE_INIT, "{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"" WAITS "\"]}", NULL,
                                remove_cache);
    expect(&job, OUTCOME_INFRA, "does not count (the set-up command");
    assert_int_equal(job.result.fault, FAULT_NODE);
    end_job(&job);
    remake_cache();
    cache_watch_close(&watch);
}

static char image[160];

static void replace_image(void)
{
    char gone[200];
    snprintf(gone, sizeof(gone), "%s.gone", image);
    assert_int_equal(rename(image, gone), 0);
    assert_int_equal(mkdir(image, 0755), 0);
}

/* bash and sleep with their libraries. */
static void make_image(void)
{
    char script[1024];
    make_dir(image, sizeof(image), "image");
    snprintf(script, sizeof(script),
             "set -e; cd %s; mkdir -p usr/bin; ln -s usr/bin bin; cp -L /usr/bin/bash "
             "/usr/bin/sleep usr/bin/; "
             "for f in $(ldd /usr/bin/bash /usr/bin/sleep | grep -o '/[^ :]*\\.so[^ :]*' | sort "
             "-u); do cp -L --parents $f .; done",
             image);
    assert_int_equal(system(script), 0);
}

FIBER_TEST(a_verdict_on_an_image_that_was_replaced_is_none)
{
    char json[512];
    make_image();
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"p\",\"image\":\"%s\","
             "\"eval\":{\"kind\":\"command\",\"command\":\"" WAITS "\"}}",
             image);
    expect_not_believed(STAGE_EVAL, json, replace_image, FAULT_IMAGE, "is not there any more, or is another one");
}

/* ---- processes ------------------------------------------------------------------------------ */

static void write_below(const char *path, const char *text)
{
    char command[600];
    snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s)", directory, path);
    assert_int_equal(system(command), 0);
    write_host_file(directory, path, text, 0644);
}

static void starve(void) { write_below("proc/vmstat", "oom_kill 2\n"); }

FIBER_TEST(a_verdict_while_the_kernel_killed_for_want_of_memory_is_none)
{
    if (cgroups_are_there(&cgroups) && fixture_tier != TIER_fuse_overlayfs)
        return; /* the kernel tells of each sandbox: test_cgroup.c */
    starved_root = directory;
    write_below("proc/vmstat", "oom_kill 1\n");
    expect_not_believed(STAGE_EVAL, TASK(""), starve, FAULT_NODE, "the kernel killed 1 processes for want of memory");
    write_below("proc/vmstat", "oom_kill 1\n");
    expect_not_believed(STAGE_RUN, TASK(""), starve, FAULT_NODE, "the kernel killed 1 processes for want of memory");
}

/* The parent of the shell that the sleep is a child of. */
static void kill_first(void)
{
    pid_t pid = find_inside("sleep");
    for (int up = 0; up < 2; up++)
        pid = (pid_t)fixture_read_status(pid, "PPid: %llu");
    assert_int_equal(kill(pid, SIGKILL), 0);
}

FIBER_TEST(a_sandbox_whose_first_process_was_killed_is_the_nodes_fault)
{
    expect_not_believed(STAGE_EVAL, TASK(""), kill_first, FAULT_NODE, "the sandbox ended unexpectedly");
    struct job run = run_harmed(STAGE_RUN, TASK(""), NULL, kill_first);
    assert_int_equal(run.result.outcome, OUTCOME_INFRA);
    end_job(&run);
}

static void kill_server(void)
{
    if (fixture_tier == TIER_fuse_overlayfs)
        assert_int_equal(kill(find_inside("fuse-overlayfs"), SIGKILL), 0);
}

FIBER_TEST(a_sandbox_whose_file_system_lost_its_process_is_the_nodes_fault)
{
    if (fixture_tier != TIER_fuse_overlayfs)
        return;
    expect_not_believed(STAGE_EVAL, TASK(""), kill_server, FAULT_NODE, "");
    struct job run = run_harmed(STAGE_RUN, TASK(""), NULL, kill_server);
    expect(&run, OUTCOME_INFRA, "");
    end_job(&run);
}

static void stop_server(void) { assert_int_equal(kill(find_inside("fuse-overlayfs"), SIGSTOP), 0); }

FIBER_TEST(a_file_system_that_hangs_is_not_waited_for_without_end_and_is_the_nodes_fault)
{
    if (fixture_tier != TIER_fuse_overlayfs)
        return;
    int64_t began_ms = clock_ms();
    struct job job = run_harmed(
        STAGE_EVAL, "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"command\",\"command\":\"" WAITS "\"}}", NULL,
        stop_server);
    expect(&job, OUTCOME_INFRA, "did not answer any more");
    assert_int_equal(job.result.fault, FAULT_NODE);
    assert_true(clock_ms() - began_ms < JOB_PACK_MS + 15000);
    end_job(&job);
}

/* ---- who was killed, by the files of the kernel ------------------------------------------------ */

static void what_the_kernel_killed_is_read_where_this_process_is_counted(void **state)
{
    (void)state;
    starved_root = directory;
    write_below("proc/vmstat", "nr_free_pages 5\noom_kill 7\ndrop_pagecache 0\n");
    assert_int_equal(starved_count(), 7);
    write_below("proc/self/cgroup", "4:memory:/jobs/3\n0::/\n");
    assert_int_equal(starved_count(), 7);
    write_below("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
    assert_int_equal(starved_count(), 6);
    write_below("sys/fs/cgroup/memory/jobs/3/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    assert_int_equal(starved_count(), 5);
    write_below("proc/self/cgroup", "0::/user.slice/here.scope\n");
    write_below("sys/fs/cgroup/user.slice/memory.events",
                "low 0\nhigh 0\nmax 9\noom 3\noom_kill 4\noom_group_kill 0\n");
    assert_int_equal(starved_count(), 4);
}

static int stop_starving(void **state)
{
    starved_root = "";
    return tear_down_kinds(state);
}

static int group(void)
{
#define IN_KINDS(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, stop_starving)
    const struct CMUnitTest tests[] = {
        IN_KINDS(what_was_not_harmed_is_believed),
        IN_KINDS(a_verdict_over_layers_that_were_removed_is_none),
        IN_KINDS(a_verdict_over_a_layer_that_a_file_went_from_is_none_and_the_next_has_it_again),
        IN_KINDS(a_verdict_without_the_evaluators_own_files_is_none),
        IN_KINDS(layers_with_directories_that_nobody_may_enter_are_believed),
        IN_KINDS(a_verdict_in_a_cache_that_was_replaced_is_none_where_no_layer_was_used_either),
        IN_KINDS(a_set_up_that_fails_over_a_cache_that_was_removed_is_not_the_tasks_fault),
        IN_KINDS(a_verdict_on_an_image_that_was_replaced_is_none),
        IN_KINDS(a_verdict_while_the_kernel_killed_for_want_of_memory_is_none),
        IN_KINDS(a_sandbox_whose_first_process_was_killed_is_the_nodes_fault),
        IN_KINDS(a_sandbox_whose_file_system_lost_its_process_is_the_nodes_fault),
        IN_KINDS(a_file_system_that_hangs_is_not_waited_for_without_end_and_is_the_nodes_fault),
        IN_KINDS(what_the_kernel_killed_is_read_where_this_process_is_counted),
    };
    int failed = cmocka_run_group_tests_name("whole", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_in_every_tier(group); }
