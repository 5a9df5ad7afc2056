/*
 * sandbox_fixture.h - a spawner, a loop and a temporary directory for each test; bodies of
 * tests run in a fiber. Every group runs once as whoever runs it and, when that is root, once
 * more as an ordinary user.
 */
#ifndef SLUICE_TESTS_WORKERS_SANDBOX_SANDBOX_FIXTURE_H
#define SLUICE_TESTS_WORKERS_SANDBOX_SANDBOX_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/runtime/fiber.h"
#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/cgroup/cgroup_base.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/sandbox.h"
#include "workers/sandbox/spawner_start.h"

#ifndef FIXTURE_LIMIT_MS
#define FIXTURE_LIMIT_MS 60000
#endif
#ifndef FIXTURE_COMMAND_MS
#define FIXTURE_COMMAND_MS 20000
#endif
enum { FIXTURE_USER = 1001, COMMAND_MS = FIXTURE_COMMAND_MS };

static struct spawner *spawner;
static struct loop *loop;
static struct cgroups cgroups; /* where the machine has them for us */
static char directory[64];
static enum tier fixture_tier; /* of the sandboxes that set_up's spawner makes */

static inline void make_dir(char *ret, size_t size, const char *name)
{
    snprintf(ret, size, "%s/%s", directory, name);
    assert_int_equal(mkdir(ret, 0755), 0);
}

static inline int set_up(void **state)
{
    char scratch[128];
    struct fail fail = {0};
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
    const char *told = getenv("SLUICE_TEST_TIER"); /* tests/apptainer.sh */
    if (!mkdtemp(directory) || (told && !tier_parse(told, &fixture_tier)))
        return -1;
    make_dir(scratch, sizeof(scratch), "scratch");
    char disks[128];
    snprintf(disks, sizeof(disks), "%s/disks", directory);
    cgroups_open(&cgroups);
    spawner = spawner_start_bounded(scratch, fixture_tier, disks, &cgroups, &fail);
    loop = loop_create();
    return spawner && loop && spawner_attach(spawner, loop) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *it, int type, struct FTW *walk)
{
    (void)it, (void)type, (void)walk;
    return remove(path);
}

static inline int tear_down(void **state)
{
    (void)state;
    spawner_stop(&spawner);
    loop_destroy(&loop);
    cgroups_close(&cgroups);
    return nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void fixture_late(void *arg)
{
    (void)arg;
    fprintf(stderr, "the test did not end within %d s\n", FIXTURE_LIMIT_MS / 1000);
    abort();
}

static void fixture_ended(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void fixture_call(void *arg) { ((void (*)(void))arg)(); }

static inline void in_fiber(void (*body)(void))
{
    struct loop_timer *limit = loop_after(loop, FIXTURE_LIMIT_MS, fixture_late, NULL);
    assert_non_null(fiber_start(loop, fixture_call, fixture_ended, (void *)body));
    loop_run(loop);
    loop_cancel(loop, &limit);
}

/* A test of NAME whose body runs in a fiber: FIBER_TEST(name) { ... } */
#define FIBER_TEST(name)                                                                                               \
    static void name##_body(void);                                                                                     \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        in_fiber(name##_body);                                                                                         \
    }                                                                                                                  \
    static void name##_body(void)

static inline struct sandbox_plan host_plan(void)
{
    return (struct sandbox_plan){.image = "host", .memory_mib = 512, .disk_mib = 64, .processes = 64};
}

static inline struct sandbox *open_sandbox(const struct sandbox_plan *plan)
{
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    if (sandbox_open(spawner, plan, &sandbox, &fail) < 0)
        fail_msg("sandbox_open: %s", fail.text);
    return sandbox;
}

static inline struct sandbox *open_host(void)
{
    struct sandbox_plan plan = host_plan();
    return open_sandbox(&plan);
}

/* Runs a command that must come to its end and gives its status; the text is for free(). */
static inline int run_text(struct sandbox *sandbox, const char *command, char **text)
{
    struct sandbox_output output;
    struct fail fail = {0};
    if (sandbox_command(sandbox, command, COMMAND_MS, 1 << 20, &output, &fail) < 0)
        fail_msg("%s: %s", command, fail.text);
    assert_false(output.timed_out);
    *text = output.text;
    return output.status;
}

static inline void expect_text(struct sandbox *sandbox, const char *command, const char *expected)
{
    char *text;
    run_text(sandbox, command, &text);
    assert_string_equal(text, expected);
    free(text);
}

static inline void expect_status(struct sandbox *sandbox, const char *command, int expected)
{
    char *text;
    int status = run_text(sandbox, command, &text);
    if (status != expected)
        fail_msg("%s: status %d, not %d: %s", command, status, expected, text);
    free(text);
}

static inline void write_host_file(const char *dir, const char *name, const char *content, mode_t mode)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

/* But . and .. */
static inline size_t fixture_count_entries(const char *path)
{
    size_t count = 0;
    DIR *stream = opendir(path);
    while (stream && readdir(stream))
        count++;
    if (stream)
        closedir(stream);
    return count > 2 ? count - 2 : 0;
}

/* Of the line of /proc/PID/status that `format` is of, the number: "FDSize: %llu". */
static inline uint64_t fixture_read_status(pid_t pid, const char *format)
{
    char path[64], line[512];
    unsigned long long number = 0;
    bool is_there = false;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *lines = fopen(path, "r");
    assert_non_null(lines);
    while (!is_there && fgets(line, sizeof(line), lines))
        is_there = sscanf(line, format, &number) == 1;
    fclose(lines);
    assert_true(is_there);
    return number;
}

/* The first child of `parent` whose name is `name`. */
static inline pid_t find_child(pid_t parent, const char *name)
{
    char path[64];
    int pid, found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    while (!found && fscanf(list, "%d", &pid) == 1) {
        char comm[32] = "";
        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        FILE *file = fopen(path, "r");
        if (file && fgets(comm, sizeof(comm), file) && strncmp(comm, name, strlen(name)) == 0)
            found = pid;
        if (file)
            fclose(file);
    }
    fclose(list);
    assert_true(found > 0);
    return found;
}

/* Whether this user has what the tier needs of the machine beyond what all tests need. */
static inline bool fixture_can_use(enum tier tier)
{
    static const char program[] = "/usr/bin/fuse-overlayfs";
    return tier != TIER_fuse_overlayfs || (access("/dev/fuse", R_OK | W_OK) == 0 && access(program, X_OK) == 0);
}

static int (*fixture_group)(void);

static inline int fixture_run_tiers(void)
{
    int failed = 0;
    for (int i = 0; i < TIER_COUNT && tier_has_namespaces((enum tier)i); i++) { /* the other: test_landlock.c */
        fixture_tier = (enum tier)i;
        printf("%s, sandboxes of the tier %s\n",
               fixture_can_use(fixture_tier) ? "now" : "SKIPPED: no FUSE for this user", tier_word(fixture_tier));
        fflush(stdout);
        failed |= fixture_can_use(fixture_tier) ? fixture_group() : 0;
    }
    return failed;
}

static inline int run_as_everyone(int (*group)(void))
{
    int failed = group();
    if (geteuid() != 0)
        return failed;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0 ||
            setresuid(FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0 ||
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) /* as after an exec: /proc/self is ours */
            _exit(1);
        printf("again, as uid %d\n", FIXTURE_USER);
        exit(group());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return failed || status != 0;
}

/* As run_as_everyone, once for each tier that can be had. */
static inline int run_in_every_tier(int (*group)(void))
{
    fixture_group = group;
    return run_as_everyone(fixture_run_tiers);
}

#endif
