/* What differs between tiers: who holds the disk limit, and what is left on a disk. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/xattr.h>

#include "common/base/buffer.h"
#include "common/base/clock.h"
#include "workers/files/dirtree.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"

enum { END_MS = 20000 };

static int set_up_disk(void **state)
{
    fixture_tier = TIER_overlay_disk;
    return set_up(state);
}

static int set_up_fuse(void **state)
{
    fixture_tier = TIER_fuse_overlayfs;
    return set_up(state);
}

static void list_dir(const char *path, char *own, size_t own_size)
{
    DIR *stream = opendir(path);
    assert_non_null(stream);
    const struct dirent *entry;
    while ((entry = readdir(stream)))
        if (entry->d_name[0] != '.')
            snprintf(own, own_size, "%s/%s", path, entry->d_name);
    closedir(stream);
}

static void list_disks(char *path, size_t size, char *own, size_t own_size)
{
    snprintf(path, size, "%s/disks", directory);
    list_dir(path, own, own_size);
}

/* In a fiber; the kernel and the quota daemon say nothing when they are done. */
static void wait_until_empty(const char *path)
{
    int64_t until_ms = clock_ms() + END_MS;
    while (fixture_count_entries(path) > 0) {
        assert_true(clock_ms() < until_ms);
        await_sleep(5);
    }
}

/* ---- overlay-disk ----------------------------------------------------------------------- */

FIBER_TEST(what_is_written_lies_on_the_disk_and_goes_with_the_sandbox)
{
    char disks[128], own[512] = "", path[600];
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "echo hello > /workspace/f; mkdir -m 0 /workspace/shut; touch /etc/x", 1);
    list_disks(disks, sizeof(disks), own, sizeof(own));
    assert_int_equal(fixture_count_entries(own), 1);
    snprintf(path, sizeof(path), "%s/2/upper/workspace/f", own);
    struct stat it;
    if (stat(path, &it) < 0) /* the number is the request's */
        snprintf(path, sizeof(path), "%s/1/upper/workspace/f", own);
    assert_int_equal(stat(path, &it), 0);
    assert_int_equal(it.st_uid, geteuid());
    assert_int_equal(stat(own, &it), 0);
    assert_int_equal(it.st_mode & 0777, 0700); /* no other user of the host reaches it */
    sandbox_close(&sandbox);
    wait_until_empty(own);
}

/* On every tier: whatever lies in a layer, and whatever is done inside. */
FIBER_TEST(the_hosts_names_at_the_top_stay_what_they_are)
{
    char layer[128], bin[160];
    make_dir(layer, sizeof(layer), "layer");
    snprintf(bin, sizeof(bin), "%s/bin", layer);
    assert_int_equal(mkdir(bin, 0755), 0);
    write_host_file(bin, "bash", "not a program\n", 0755);
    write_host_file(layer, "lib64", "", 0644);
    struct sandbox_plan plan = host_plan();
    plan.layers = (const char *[]){layer};
    plan.layer_count = 1;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox,
                "for n in bin sbin lib lib32 lib64 libx32 usr etc opt; do rm -f /$n; rmdir /$n; mv "
                "/$n /gone-$n; "
                "ln -sfn /tmp /$n; ln -sT /tmp /tmp/new; mv -T /tmp/new /$n; done 2>/dev/null; ls "
                "-d /gone-* 2>/dev/null; type -P bash; /bin/bash -c 'echo $0'",
                "/usr/bin/bash\n/bin/bash\n");
    sandbox_close(&sandbox);
}

static void expect_killed(struct sandbox *sandbox, const char *command, const char *breach)
{
    struct sandbox_output output = {0};
    struct fail fail = {0};
    char words[128];
    assert_int_equal(sandbox_command(sandbox, command, COMMAND_MS, 1000, &output, &fail), -EIO);
    snprintf(words, sizeof(words), "the sandbox wrote more than its limit, %s, and was killed", breach);
    assert_string_equal(fail.text, words);
    assert_string_equal(sandbox_breach(sandbox), breach);
    struct sandbox_usage usage;
    sandbox_get_usage(sandbox, &usage);
    assert_true(usage.breaches[strcmp(breach, "disk") == 0 ? LIMIT_DISK : LIMIT_INODES] > 0);
}

FIBER_TEST(one_file_is_never_larger_than_the_disk_limit)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 16;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_status(sandbox, "(trap '' XFSZ; head -c 17M /dev/zero > big) 2>/dev/null", 1);
    expect_text(sandbox, "stat -c %s big", "16777216\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(who_writes_more_than_the_disk_limit_in_all_is_killed)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 16;
    struct sandbox *sandbox = open_sandbox(&plan), *other = open_host();
    expect_killed(sandbox, "for i in 1 2 3 4; do head -c 8M /dev/zero > part$i; done; sleep 100", "disk");
    expect_text(other, "echo fine", "fine\n");
    sandbox_close(&sandbox);
    sandbox_close(&other);
}

FIBER_TEST(who_makes_more_files_than_the_limit_is_killed)
{
    struct sandbox_plan plan = host_plan();
    plan.inodes = 500;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_killed(sandbox, "mkdir d; for i in {1..1000}; do : > d/$i; done; sleep 100", "inodes");
    sandbox_close(&sandbox);
}

FIBER_TEST(what_is_hidden_from_the_owner_or_lies_deep_counts)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 16;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_killed(sandbox,
                  "mkdir shut; for i in 1 2 3; do head -c 8M /dev/zero > shut/$i; done; chmod 0 "
                  "shut; sleep 100",
                  "disk");
    sandbox_close(&sandbox);
    plan.inodes = 100;
    sandbox = open_sandbox(&plan);
    expect_killed(sandbox, "perl -e 'for (1..600) { mkdir q(d); chdir q(d) } sleep 100'", "inodes");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_file_with_many_names_counts_once)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 16;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_status(sandbox, "head -c 8M /dev/zero > a; for i in 1 2 3 4 5; do ln a a$i; done; sleep 1; echo", 0);
    struct sandbox_usage usage;
    sandbox_get_usage(sandbox, &usage);
    assert_null(sandbox_breach(sandbox));
    assert_true(usage.peak_disk_bytes >= (8 << 20) - 64 && usage.peak_disk_bytes < 9 << 20);
    sandbox_close(&sandbox);
}

/* ---- the quota daemon ------------------------------------------------------------------------- */

/* 0 while it has not yet taken its name. */
static pid_t look_for_quota(void)
{
    char path[64];
    int pid, found = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", spawner_pid(spawner), spawner_pid(spawner));
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    while (!found && fscanf(list, "%d", &pid) == 1) {
        char comm[32] = "";
        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        FILE *file = fopen(path, "r");
        if (file && fgets(comm, sizeof(comm), file) && strcmp(comm, "sluice-quota\n") == 0)
            found = pid;
        if (file)
            fclose(file);
    }
    fclose(list);
    return found;
}

static pid_t find_quota(void)
{
    const int64_t until_ms = clock_ms() + COMMAND_MS;
    pid_t found;
    while ((found = look_for_quota()) == 0 && clock_ms() < until_ms)
        await_sleep(5);
    assert_true(found > 0);
    return found;
}

/* Another spawner, which writes below `parent`. Its stack is what is left of ours. */
static void restart_at(const char *parent)
{
    char scratch[128];
    struct fail fail = {0};
    spawner_stop(&spawner);
    snprintf(scratch, sizeof(scratch), "%s/scratch", directory);
    spawner = spawner_start_tier(scratch, TIER_overlay_disk, parent, &fail);
    if (!spawner || !spawner_attach(spawner, loop))
        fail_msg("spawner_start_tier: %s", fail.text);
}

FIBER_TEST(without_its_quota_daemon_the_spawner_ends)
{
    struct sandbox *sandbox = open_host(), *other = NULL;
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    siginfo_t ended = {0};
    const char *argv[] = {"/bin/sleep", "1000", NULL};
    pid_t pid;
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    assert_int_equal(kill(find_quota(), SIGKILL), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), -EIO);
    assert_string_equal(fail.text, "the sandbox ended unexpectedly");
    assert_int_equal(waitid(P_PID, (id_t)spawner_pid(spawner), &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(sandbox_open(spawner, &plan, &other, &fail), -EIO);
    assert_string_equal(fail.text, "the spawner is gone");
    sandbox_close(&sandbox);
}

/* More orders than a socket takes whose other end does not read: some 280. */
FIBER_TEST(a_quota_daemon_that_stands_still_stops_no_opening_and_is_told_all_later)
{
    enum { CONTAINERS = 160 };
    char disks[128], own[512] = "";
    struct sandbox *first = open_host();
    pid_t quota = find_quota();
    list_disks(disks, sizeof(disks), own, sizeof(own));
    assert_int_equal(kill(quota, SIGSTOP), 0);
    for (int i = 0; i < CONTAINERS; i++) {
        struct sandbox *sandbox = open_host();
        sandbox_close(&sandbox);
    }
    assert_int_equal(fixture_count_entries(own), 1 + CONTAINERS);
    sandbox_close(&first);
    assert_int_equal(kill(quota, SIGCONT), 0);
    wait_until_empty(own);
}

static char quick[64]; /* where many directories are made quickly, if an overlay can be written there */

/* Fewer descriptors than the tree has levels. */
static int set_up_quick(void **state)
{
    char parent[96];
    struct rlimit few = {1024, 1024};
    if (set_up_disk(state) < 0 || setrlimit(RLIMIT_NOFILE, &few) < 0)
        return -1;
    strcpy(quick, "/dev/shm/sluice-test-XXXXXX");
    if (!mkdtemp(quick) || setxattr(quick, "user.test", "", 0, 0) < 0) {
        rmdir(quick);
        strcpy(quick, "/tmp/sluice-test-XXXXXX");
        if (!mkdtemp(quick))
            return -1;
    }
    snprintf(parent, sizeof(parent), "%s/disks", quick);
    restart_at(parent);
    return 0;
}

static int tear_down_quick(void **state)
{
    dirtree_remove(quick);
    return tear_down(state);
}

/* The quota daemon is kept from ending its maker before it is made. */
FIBER_TEST(a_tree_of_20000_levels_that_an_agent_made_is_removed)
{
    char parent[96], own[512] = "";
    struct sandbox *sandbox = open_host();
    snprintf(parent, sizeof(parent), "%s/disks", quick);
    list_dir(parent, own, sizeof(own));
    pid_t quota = find_quota();
    assert_int_equal(kill(quota, SIGSTOP), 0);
    expect_status(sandbox, "perl -e 'for (1..20000) { mkdir q(d) or die; chdir q(d) or die }'", 0);
    assert_int_equal(fixture_count_entries(own), 1);
    assert_int_equal(kill(quota, SIGCONT), 0);
    sandbox_close(&sandbox);
    wait_until_empty(own);
    assert_int_equal(find_quota(), quota); /* and it lives */
    spawner_stop(&spawner);
    assert_int_equal(fixture_count_entries(parent), 0);
}

/* As a worker that was killed leaves it; and one that another worker holds. */
FIBER_TEST(remains_of_killed_workers_are_removed_and_those_of_living_ones_are_not)
{
    char parent[128], dead[256], living[256];
    spawner_stop(&spawner);
    snprintf(parent, sizeof(parent), "%s/disks", directory);
    assert_int_equal(fixture_count_entries(parent), 0);
    snprintf(dead, sizeof(dead), "%s/disks.tmp.aaaaaa", parent);
    snprintf(living, sizeof(living), "%s/disks.tmp.bbbbbb", parent);
    assert_int_equal(mkdir(dead, 0700), 0);
    assert_int_equal(mkdir(living, 0700), 0);
    write_host_file(dead, "left", "left", 0600);
    int held = open(living, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_SH), 0);
    restart_at(parent);
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "echo fine", "fine\n");
    sandbox_close(&sandbox);
    wait_until_empty(dead);
    assert_int_equal(access(living, F_OK), 0);
    close(held);
}

/* ---- fuse-overlayfs --------------------------------------------------------------------- */

FIBER_TEST(with_fuse_the_disk_limit_is_the_kernels)
{
    struct sandbox_plan plan = host_plan();
    plan.disk_mib = 16;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox,
                "head -c 17M /dev/zero 2>&1 > big | grep -o 'No space.*'; echo after > /dev/shm/f "
                "&& echo fine",
                "No space left on device\nfine\n");
    assert_null(sandbox_breach(sandbox));
    sandbox_close(&sandbox);
}

FIBER_TEST(with_fuse_the_root_is_that_file_system_and_its_process_is_out_of_reach)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox, "stat -f -c %T /; ls /proc | grep -c '^[0-9]'", "fuseblk\n4\n");
    sandbox_close(&sandbox);
}

/* The paths of the archive, a line each. */
static char *list_packed(struct sandbox *sandbox)
{
    struct fail fail = {0};
    struct archive_entry *entry;
    struct buffer text = {0};
    uint64_t bytes;
    int fd = memfd_create("tar", MFD_CLOEXEC);
    if (sandbox_pack(sandbox, fd, &bytes, &fail) < 0)
        fail_msg("sandbox_pack: %s", fail.text);
    lseek(fd, 0, SEEK_SET);
    struct archive *archive = archive_read_new();
    archive_read_support_format_tar(archive);
    assert_int_equal(archive_read_open_fd(archive, fd, 65536), ARCHIVE_OK);
    while (archive_read_next_header(archive, &entry) == ARCHIVE_OK)
        buffer_printf(&text, "%s\n", archive_entry_pathname(entry));
    archive_read_free(archive);
    close(fd);
    return buffer_take_str(&text);
}

FIBER_TEST(what_fuse_notes_as_gone_is_packed_as_gone)
{
    char layer[128], inner[256];
    const char *layers[] = {layer};
    make_dir(layer, sizeof(layer), "layer");
    snprintf(inner, sizeof(inner), "%s/replaced", layer);
    assert_int_equal(mkdir(inner, 0755), 0);
    write_host_file(layer, "gone", "gone", 0644);
    write_host_file(inner, "old", "old", 0644);
    struct sandbox_plan plan = host_plan();
    plan.layers = layers;
    plan.layer_count = 1;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox, "cat /gone /replaced/old", "goneold");
    expect_status(sandbox, "rm /gone; rm -r /replaced; mkdir /replaced; echo new > /replaced/new", 0);
    char *text = list_packed(sandbox);
    assert_string_equal(text, ".wh.gone\nreplaced\nreplaced/.wh..wh..opq\nreplaced/new\n");
    free(text);
    sandbox_close(&sandbox);
}

FIBER_TEST(with_fuse_files_handed_out_have_their_state)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    struct stat it;
    assert_int_equal(sandbox_write_file(sandbox, "f", "hello", 5, 0640, &fail), 0);
    expect_status(sandbox, "ln f g", 0);
    int fd = sandbox_open_file(sandbox, "f", O_RDWR, 0, &fail);
    assert_true(fd >= 0);
    assert_int_equal(sandbox_stat_file(sandbox, fd, &it, &fail), 0);
    assert_true(S_ISREG(it.st_mode) && (it.st_mode & 07777) == 0640);
    assert_int_equal(it.st_size, 5);
    assert_int_equal(it.st_nlink, 2);
    assert_int_equal(sandbox_chmod_file(sandbox, fd, 0711, &fail), 0);
    expect_text(sandbox, "stat -c %a f", "711\n");
    close(fd);
    sandbox_close(&sandbox);
}

#define DISK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_disk, tear_down)
#define FUSE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_fuse, tear_down)

static int group(void)
{
    const struct CMUnitTest disk[] = {
        DISK_TEST(what_is_written_lies_on_the_disk_and_goes_with_the_sandbox),
        DISK_TEST(the_hosts_names_at_the_top_stay_what_they_are),
        DISK_TEST(one_file_is_never_larger_than_the_disk_limit),
        DISK_TEST(who_writes_more_than_the_disk_limit_in_all_is_killed),
        DISK_TEST(who_makes_more_files_than_the_limit_is_killed),
        DISK_TEST(what_is_hidden_from_the_owner_or_lies_deep_counts),
        DISK_TEST(a_file_with_many_names_counts_once),
        DISK_TEST(without_its_quota_daemon_the_spawner_ends),
        DISK_TEST(a_quota_daemon_that_stands_still_stops_no_opening_and_is_told_all_later),
        cmocka_unit_test_setup_teardown(a_tree_of_20000_levels_that_an_agent_made_is_removed, set_up_quick,
                                        tear_down_quick),
        DISK_TEST(remains_of_killed_workers_are_removed_and_those_of_living_ones_are_not),
    };
    const struct CMUnitTest fuse[] = {
        FUSE_TEST(the_hosts_names_at_the_top_stay_what_they_are),
        FUSE_TEST(what_fuse_notes_as_gone_is_packed_as_gone),
        FUSE_TEST(with_fuse_files_handed_out_have_their_state),
        FUSE_TEST(with_fuse_the_disk_limit_is_the_kernels),
        FUSE_TEST(with_fuse_the_root_is_that_file_system_and_its_process_is_out_of_reach),
    };
    int failed = cmocka_run_group_tests_name("overlay-disk", disk, NULL, NULL);
    if (!fixture_can_use(TIER_fuse_overlayfs)) {
        printf("SKIPPED: no FUSE for this user\n");
        return failed;
    }
    return cmocka_run_group_tests_name("fuse-overlayfs", fuse, NULL, NULL) || failed;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return run_as_everyone(group);
}
