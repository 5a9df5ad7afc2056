/* Where a worker's groups are, and what is not its own; skipped where there is no cgroup v2 (cgroup_fixture.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/workers/sandbox/cgroup/cgroup_fixture.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/cgroup/cgroup_files.h"

static struct cgroups cgroups;

static int set_up(void **state)
{
    (void)state;
    return cgroups_open(&cgroups) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cgroups_close(&cgroups);
    return 0;
}

/* ---- workers ------------------------------------------------------------------------ */

static pid_t fork_worker(void (*body)(int), int tell)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        body(tell);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

/* A worker with a sandbox in which a process outlives it, as where there are no namespaces. */
static void be_killed(int tell)
{
    struct cgroups own;
    struct fail fail;
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (!cgroups_open(&own))
        _exit(1);
    int group = cgroup_make(&own, 7, &fail);
    pid_t pid = group < 0 ? -1 : cgroup_clone(&args, group);
    if (pid == 0) {
        setsid();
        for (;;)
            pause();
    }
    if (write(tell, &pid, sizeof(pid)) != sizeof(pid) || write(tell, own.name, sizeof(own.name)) < 0)
        _exit(1);
    for (;;)
        pause();
}

static char killed[sizeof(cgroups.name)]; /* what was left, as the next one knows it */

static void start_and_end(int tell)
{
    struct cgroups own;
    bool is_there = cgroups_open(&own), is_gone = faccessat(own.base, killed, F_OK, 0) < 0;
    cgroups_close(&own);
    if (write(tell, &is_gone, sizeof(is_gone)) != sizeof(is_gone) || !is_there)
        _exit(1);
}

static void what_a_killed_worker_left_is_ended_by_the_next_ones_start(void **state)
{
    int pipes[2], status;
    pid_t stray;
    bool is_gone;
    (void)state;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t worker = fork_worker(be_killed, pipes[1]);
    assert_int_equal(read(pipes[0], &stray, sizeof(stray)), sizeof(stray));
    assert_true(stray > 0);
    assert_int_equal(read(pipes[0], killed, sizeof(killed)), sizeof(killed));
    assert_int_equal(kill(worker, SIGKILL), 0);
    assert_int_equal(waitpid(worker, &status, 0), worker);
    assert_int_equal(faccessat(cgroups.base, killed, F_OK, 0), 0);
    assert_int_equal(kill(stray, 0), 0);
    pid_t next = fork_worker(start_and_end, pipes[1]);
    assert_int_equal(read(pipes[0], &is_gone, sizeof(is_gone)), sizeof(is_gone));
    assert_true(is_gone);
    assert_int_equal(waitpid(next, &status, 0), next);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(stray, &status, 0), stray);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- what is not ours --------------------------------------------------------------- */

static const char shared[] = "shared/inner"; /* what is above it is not marked either */

static void join_shared(void)
{
    AUTO_CLOSE int dir = openat(cgroups.base, shared, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int door = cgroup_open_door(dir);
    if (cgroup_join(door) < 0)
        _exit(99);
}

static void be_there(int tell)
{
    join_shared();
    if (write(tell, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void come_later(int tell)
{
    struct cgroups own;
    char before[4096], after[4096];
    join_shared();
    cgroup_read(AT_FDCWD, "/proc/self/cgroup", before, sizeof(before));
    bool is_there = cgroups_open(&own);
    cgroup_read(AT_FDCWD, "/proc/self/cgroup", after, sizeof(after));
    if (is_there || strcmp(before, after) != 0)
        snprintf(own.why.text, sizeof(own.why.text), "there: %d, from %.200sto %.200s", is_there, before, after);
    if (write(tell, own.why.text, sizeof(own.why.text)) < 0)
        _exit(1);
}

/* A group beside ours with one process in it, given to us or not; what a worker says that starts there. */
static void start_in_shared(bool is_given, char said[512], pid_t *ret_there)
{
    int pipes[2], status;
    struct stat it;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(mkdirat(cgroups.base, "shared", 0755), 0);
    assert_int_equal(mkdirat(cgroups.base, shared, 0755), 0);
    assert_int_equal(cgroup_write(cgroups.base, "shared/cgroup.subtree_control", "+memory +pids"), 0);
    AUTO_CLOSE int dir = openat(cgroups.base, shared, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (is_given)
        fsetxattr(dir, "user.delegate", "1", 1, 0);
    *ret_there = fork_worker(be_there, pipes[1]);
    assert_int_equal(read(pipes[0], said, 1), 1);
    pid_t later = fork_worker(come_later, pipes[1]);
    assert_true(read(pipes[0], said, 512) > 0);
    assert_int_equal(waitpid(later, &status, 0), later);
    assert_int_equal(fstat(dir, &it), 0);
    assert_int_equal(it.st_nlink, 2); /* no group was left in it */
    kill(*ret_there, SIGKILL);
    waitpid(*ret_there, &status, 0);
    assert_int_equal(unlinkat(cgroups.base, shared, AT_REMOVEDIR), 0);
    assert_int_equal(unlinkat(cgroups.base, "shared", AT_REMOVEDIR), 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void where_other_processes_are_nothing_is_made_and_they_are_named(void **state)
{
    char said[512], words[64];
    pid_t there;
    (void)state;
    start_in_shared(true, said, &there);
    snprintf(words, sizeof(words), "/shared/inner, %d (", there);
    if (!strstr(said, "other processes are in ") || !strstr(said, words))
        fail_msg("%s", said);
}

/* Root could, and systemd would not like it. */
static void root_takes_only_what_it_was_given(void **state)
{
    char said[512];
    pid_t there;
    (void)state;
    if (geteuid() != 0)
        skip();
    start_in_shared(false, said, &there);
    assert_non_null(strstr(said, "/shared/inner is not delegated to this process"));
}

/* ---- all of them -------------------------------------------------------------------- */

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_a_killed_worker_left_is_ended_by_the_next_ones_start),
        TEST(where_other_processes_are_nothing_is_made_and_they_are_named),
        TEST(root_takes_only_what_it_was_given),
    };
    int status = cgroup_fixture_enter();
    return status == CGROUP_FIXTURE_GO ? cmocka_run_group_tests(tests, NULL, NULL) : status;
}
