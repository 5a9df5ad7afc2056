/* landlock_world.h - sandboxes of the tier landlock in tests, and strangers beside them. */
#ifndef SLUICE_TESTS_WORKERS_SANDBOX_LANDLOCK_WORLD_H
#define SLUICE_TESTS_WORKERS_SANDBOX_LANDLOCK_WORLD_H

#include "tests/workers/tools/shell_world.h"

#include <dirent.h>
#include <sys/socket.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/container/landlock.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"

enum { END_MS = 30000, SKIPPED = 77 };

static inline int set_up_plain(void **state)
{
    fixture_tier = TIER_landlock;
    return set_up(state);
}

static inline int tear_down_plain(void **state)
{
    (void)state;
    spawner_stop(&spawner);
    loop_destroy(&loop);
    cgroups_close(&cgroups);
    return dirtree_remove(directory);
}

#define PLAIN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_plain, tear_down_plain)

/* A command of a printf format. */
static inline void __attribute__((format(printf, 3, 4)))
expect_end(struct sandbox *sandbox, int status, const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    expect_status(sandbox, command, status);
}

/* Processes of the machine whose arguments have `mark` in them and which are not dead. */
static inline size_t count_marked(const char *mark)
{
    size_t count = 0;
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while ((entry = readdir(proc))) {
        char path[300], text[4096];
        snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        int fd = entry->d_name[0] > '0' && entry->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));
        if (fd >= 0)
            close(fd);
        count += got > 0 && memmem(text, (size_t)got, mark, strlen(mark)) != NULL;
    }
    closedir(proc);
    return count;
}

/* In a fiber. */
static inline void wait_for_marked(const char *mark, size_t wanted)
{
    int64_t until_ms = clock_ms() + END_MS;
    while (count_marked(mark) != wanted) {
        if (clock_ms() >= until_ms)
            fail_msg("%zu processes of %s, not %zu", count_marked(mark), mark, wanted);
        await_sleep(5);
    }
}

/* Processes that no signal but SIGKILL ends, whose parents are gone, in sessions of their own. */
static inline struct sandbox *start_tenacious(const char *mark)
{
    static const char tenacious[] =
        "for i in 1 2 3; do (trap '' TERM HUP INT; setsid bash -c 'trap \"\" TERM HUP INT; exec "
        "perl -e "
        "\"sleep 1 while 1\" %s' & ) & done; exec perl -e 'sleep 1 while 1' %s";
    char text[512];
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t pid;
    snprintf(text, sizeof(text), tenacious, mark, mark);
    const char *argv[] = {"/bin/bash", "-c", text, NULL};
    struct sandbox_exec exec = {.argv = argv};
    assert_int_equal(sandbox_start(sandbox, &exec, &pid, &fail), 0);
    wait_for_marked(mark, 4);
    return sandbox;
}

/* A child of the test's, which is no sandbox's; it ends with us. */
static inline pid_t start_stranger(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        for (;;)
            pause();
    }
    return pid;
}

/* Asserts that nobody ended it, and ends it. */
static inline void end_stranger(pid_t pid)
{
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif
