/* The containers' directories on a disk, and their quota daemon, beside one that does as a spawner does. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/locked_dir.h"
#include "workers/sandbox/spawner/disk_quota.h"
#include "workers/sandbox/spawner/disks.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/files/dirtree.h"

/* CONTAINERS: more messages than a socket takes whose other end does not read (some 280). */
enum { CONTAINERS = 320, ENDED = 10, END_MS = 30000, ALARM_S = 50 };

static struct disks disks;
static struct usage *usages;
static int births[2]; /* read by nobody */
static char parent[128], gate[128], sandboxes_gate[128];

bool __real_locked_dir_remove(int dir, const char *path);
bool __wrap_locked_dir_remove(int dir, const char *path);
int __real_dirtree_remove(const char *path);
int __wrap_dirtree_remove(const char *path);

/* Removing remains takes for as long as the gate is locked. */
bool __wrap_locked_dir_remove(int dir, const char *path)
{
    AUTO_CLOSE int lock = open(gate, O_RDONLY | O_CLOEXEC);
    return lock >= 0 && flock(lock, LOCK_EX) == 0 && __real_locked_dir_remove(dir, path);
}

/* And removing a container while that gate is. */
int __wrap_dirtree_remove(const char *path)
{
    AUTO_CLOSE int lock = open(sandboxes_gate, O_RDONLY | O_CLOEXEC);
    if (lock >= 0)
        flock(lock, LOCK_EX);
    return __real_dirtree_remove(path);
}

/* Who waits for the quota daemon is ended by the alarm. */
static int set_up_disks(void **state)
{
    struct fail fail;
    (void)state;
    alarm(ALARM_S);
    snprintf(directory, sizeof(directory), "/dev/shm/sluice-test-XXXXXX");
    if (!mkdtemp(directory)) {
        snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
        if (!mkdtemp(directory))
            return -1;
    }
    write_host_file(directory, "gate", "", 0600);
    snprintf(gate, sizeof(gate), "%s/gate", directory);
    write_host_file(directory, "containers-gate", "", 0600);
    snprintf(sandboxes_gate, sizeof(sandboxes_gate), "%s/containers-gate", directory);
    make_dir(parent, sizeof(parent), "disks");
    int fd;
    usages = usages_create(&fd);
    close(fd);
    if (!usages || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, births) < 0)
        return -1;
    return disks_open(&disks, TIER_overlay_disk, directory, parent, births[1], &fail);
}

static int tear_down_disks(void **state)
{
    (void)state;
    kill(disks.quota_pid, SIGCONT);
    disks_close(&disks);
    close(disks.lock);
    close(births[0]);
    close(births[1]);
    usages_destroy(&usages);
    alarm(0);
    return dirtree_remove(directory);
}

static int make_container(uint32_t id, struct fail *fail)
{
    char path[PLAN_DISK_PATH_MAX];
    struct container_plan plan = {.id = id, .wanted = {.disk_mib = 1}, .usage = &usages[id], .tier = TIER_overlay_disk};
    return disks_make(&disks, &plan, path, fail);
}

static void make_containers(uint32_t count)
{
    struct fail fail = {0};
    for (uint32_t id = 0; id < count; id++)
        if (make_container(id, &fail) < 0)
            fail_msg("disks_make: %s", fail.text);
}

static size_t count_containers(void)
{
    size_t count = 0;
    DIR *stream = opendir(disks.path);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream));)
        count += entry->d_name[0] != '.';
    closedir(stream);
    return count;
}

static void wait_until(bool (*holds)(void))
{
    int64_t until_ms = clock_ms() + END_MS;
    while (!holds()) {
        assert_true(clock_ms() < until_ms);
        struct pollfd on = {disks_is_waiting(&disks) ? disks.quota : -1, POLLOUT, 0};
        if (poll(&on, 1, 10) > 0)
            disks_send(&disks);
    }
}

static bool none_is_left(void) { return count_containers() == 0; }
static bool the_ended_are_gone(void) { return count_containers() == CONTAINERS - ENDED; }

static void a_quota_daemon_that_stands_still_holds_up_no_container(void **state)
{
    (void)state;
    assert_int_equal(kill(disks.quota_pid, SIGSTOP), 0);
    make_containers(CONTAINERS);
    for (uint32_t id = 0; id < ENDED; id++)
        disks_remove(&disks, id);
    assert_true(disks_is_waiting(&disks));
    assert_int_equal(count_containers(), CONTAINERS);
    assert_int_equal(kill(disks.quota_pid, SIGCONT), 0);
    wait_until(the_ended_are_gone);
    assert_false(disks_is_waiting(&disks));
}

static void behind_more_orders_than_a_quota_daemon_may_owe_no_container_is_made(void **state)
{
    struct fail fail = {0};
    uint32_t id = 0, ended;
    (void)state;
    assert_int_equal(kill(disks.quota_pid, SIGSTOP), 0);
    while (id < 2 * DISKS_WAITING_MAX && make_container(id, &fail) == 0)
        id++;
    assert_int_equal(fail.code, -EBUSY);
    assert_string_equal(fail.text, "the quota daemon of disks has 4096 orders to take first");
    assert_int_equal(count_containers(), id);
    for (ended = 0; ended < id; ended++) /* ends are never lost */
        disks_remove(&disks, ended);
    assert_int_equal(disks.waiting_count, DISKS_WAITING_MAX + id);
    assert_int_equal(make_container(id, &fail), -EBUSY);
    assert_int_equal(kill(disks.quota_pid, SIGKILL), 0);
}

static bool all_are_beyond(void)
{
    for (int id = 0; id < CONTAINERS; id++)
        if (atomic_load(&usages[id].breaches[LIMIT_INODES]) == 0)
            return false;
    return true;
}

static void breaches_that_nobody_reads_hold_up_neither_looks_nor_removals(void **state)
{
    (void)state;
    make_containers(CONTAINERS);
    for (int id = 0; id < CONTAINERS; id++) {
        char upper[PLAN_DISK_PATH_MAX + 32];
        snprintf(upper, sizeof(upper), "%s/%d/upper", disks.path, id);
        assert_int_equal(rmdir(upper), 0);
        assert_int_equal(mknod(upper, S_IFREG | 0600, 0), 0); /* what cannot be looked into is too much */
    }
    wait_until(all_are_beyond);
    for (uint32_t id = 0; id < ENDED; id++)
        disks_remove(&disks, id);
    wait_until(the_ended_are_gone);
}

/* Those of before: one is there before the quota daemon is. */
static void remains_that_take_long_to_remove_hold_up_no_container(void **state)
{
    char remains[256];
    struct fail fail;
    (void)state;
    disks_close(&disks);
    close(disks.lock);
    snprintf(remains, sizeof(remains), "%s/disks" HELD_DIR_TMP "aaaaaa", parent);
    assert_int_equal(mkdir(remains, 0700), 0);
    AUTO_CLOSE int lock = open(gate, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(disks_open(&disks, TIER_overlay_disk, directory, parent, births[1], &fail), 0);
    make_containers(1);
    disks_remove(&disks, 0);
    wait_until(none_is_left);
    assert_int_equal(access(remains, F_OK), 0);
    assert_int_equal(flock(lock, LOCK_UN), 0);
    disks_close(&disks);
    assert_int_equal(access(remains, F_OK), -1);
}

static size_t count_children(pid_t parent_pid)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent_pid, parent_pid);
    FILE *list = fopen(path, "re");
    assert_non_null(list);
    for (int pid; fscanf(list, "%d", &pid) == 1;)
        count++;
    fclose(list);
    return count;
}

static bool the_last_was_looked_at(void) { return atomic_load(&usages[ENDED].inodes) > 0; }
static bool only_the_last_is_left(void) { return count_containers() == 1; }

/* What comes after the ends is looked at, so the quota daemon has heard of them. */
static void however_many_containers_end_at_once_a_quota_daemon_has_two_removers(void **state)
{
    struct fail fail;
    char file[PLAN_DISK_PATH_MAX + 32];
    (void)state;
    make_containers(ENDED);
    AUTO_CLOSE int lock = open(sandboxes_gate, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    for (uint32_t id = 0; id < ENDED; id++)
        disks_remove(&disks, id);
    assert_int_equal(make_container(ENDED, &fail), 0);
    snprintf(file, sizeof(file), "%s/%d/upper/f", disks.path, ENDED);
    assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
    wait_until(the_last_was_looked_at);
    assert_int_equal(count_containers(), ENDED + 1);
    assert_int_equal(count_children(disks.quota_pid), QUOTA_REMOVERS);
    assert_int_equal(flock(lock, LOCK_UN), 0);
    wait_until(only_the_last_is_left);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_disks, tear_down_disks)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_quota_daemon_that_stands_still_holds_up_no_container),
        TEST(behind_more_orders_than_a_quota_daemon_may_owe_no_container_is_made),
        TEST(breaches_that_nobody_reads_hold_up_neither_looks_nor_removals),
        TEST(remains_that_take_long_to_remove_hold_up_no_container),
        TEST(however_many_containers_end_at_once_a_quota_daemon_has_two_removers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
