/* The probe and the doctor: what a machine allows is found, what it refuses is named with its cure. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <dirent.h>
#include <jansson.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "workers/doctor/doctor.h"
#include "common/files/dirtree_remove.h"
#include "workers/sandbox/container/landlock.h"
#include "workers/sandbox/probe/probe.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/probe/remedy.h"

static struct probe *probe; /* shared with children, who break what they live in before they probe */

static int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
    probe = mmap(NULL, sizeof(*probe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return probe != MAP_FAILED && mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    munmap(probe, sizeof(*probe));
    return dirtree_remove(directory);
}

/* By the bare call, since the thread that a sanitizer starts after fork stands in the way of unshare. */
static pid_t fork_bare(void)
{
    fflush(NULL);
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Probes in a child that did `spoil` first. */
static void probe_after(bool (*spoil)(void))
{
    struct fail fail = {0};
    int status;
    pid_t pid = fork_bare();
    if (pid == 0)
        _exit(!spoil() ? 2 : probe_run(directory, NULL, probe, &fail) < 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void expect_no(enum probe_check check, const char *text, const char *remedy)
{
    const struct probe_result *it = &probe->results[check];
    if (it->is_ok || !strstr(it->text, text) || !strstr(it->remedy, remedy))
        fail_msg("%s: %s: \"%s\", cure \"%s\"", probe_title(check), it->is_ok ? "ok" : "no", it->text, it->remedy);
}

static bool write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool wrote = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return wrote;
}

/* Rights over namespaces of our own, so that an ordinary user can break things too. */
static bool enter_namespaces(void)
{
    char uid[32], gid[32];
    snprintf(uid, sizeof(uid), "%u %u 1", geteuid(), geteuid());
    snprintf(gid, sizeof(gid), "%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_to("/proc/self/setgroups", "deny") &&
           write_to("/proc/self/uid_map", uid) && write_to("/proc/self/gid_map", gid) &&
           mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) == 0;
}

/* ---- what holds ---------------------------------------------------------------------- */

static void where_all_is_well_the_best_tier_is_chosen_and_nothing_is_left(void **state)
{
    struct fail fail = {0};
    (void)state;
    assert_int_equal(probe_run(directory, NULL, probe, &fail), 0);
    for (int i = 0; i < CHECK_COUNT; i++)
        if ((tier_needs((enum tier)0) & (1u << i)) && !probe->results[i].is_ok)
            fail_msg("%s: %s", probe_title((enum probe_check)i), probe->results[i].text);
    assert_int_equal(probe_choose(probe), 0);
    assert_int_equal(probe_missing(probe, (enum tier)0), 0);
    assert_int_equal(rmdir(directory), 0); /* empty */
    assert_int_equal(mkdir(directory, 0755), 0);
}

static void a_directory_that_cannot_be_written_is_named(void **state)
{
    struct fail fail = {0};
    (void)state;
    assert_int_equal(probe_run("/does/not/exist", NULL, probe, &fail), -ENOENT);
    assert_non_null(strstr(fail.text, "cannot write to /does/not/exist"));
}

/* ---- what is refused ----------------------------------------------------------------- */

static bool forbid_user_namespaces(void)
{
    return enter_namespaces() && write_to("/proc/sys/user/max_user_namespaces", "0");
}

static void without_user_namespaces_the_setting_is_named_and_the_rest_is_not_tried(void **state)
{
    struct fail fail = {0};
    (void)state;
    probe_after(forbid_user_namespaces);
    expect_no(CHECK_userns, "user.max_user_namespaces is 0", "echo user.max_user_namespaces=63414 >");
    expect_no(CHECK_overlay_tmpfs, "not tried: it needs mounts", "");
    assert_false(probe->results[CHECK_proc].is_tried);
    assert_true(probe->results[CHECK_seccomp].is_ok);
    assert_int_equal(probe_refuse(probe, TIER_overlay_tmpfs, &fail), -ENOTSUP);
    assert_non_null(strstr(fail.text, "no sandbox of the tier overlay-tmpfs here: user namespaces: "));
    assert_non_null(strstr(fail.text, "sysctl --system"));
}

static bool forbid_net_namespaces(void)
{
    return enter_namespaces() && write_to("/proc/sys/user/max_net_namespaces", "0");
}

static void without_net_namespaces_only_the_network_is_refused(void **state)
{
    (void)state;
    probe_after(forbid_net_namespaces);
    expect_no(CHECK_network, "No space left on device", "user.max_NAME_namespaces");
    assert_true(probe->results[CHECK_overlay_tmpfs].is_ok);
    assert_true(probe_missing(probe, TIER_overlay_tmpfs) == 1u << CHECK_network);
}

static bool filter_call(int call, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static bool filter_mount(void) { return filter_call(SYS_mount, EPERM); }
static bool filter_clone(void) { return filter_call(SYS_clone3, ENOSYS); }
static bool filter_unshare(void) { return filter_call(SYS_unshare, EPERM); }

static void a_container_that_filters_mount_is_recognized(void **state)
{
    (void)state;
    probe_after(filter_mount);
    assert_true(probe->results[CHECK_userns].is_ok);
    expect_no(CHECK_mounts, "a system call filter on this process refuses it", "--security-opt seccomp=unconfined");
    assert_int_equal(probe_choose(probe) == TIER_overlay_tmpfs, 0);
}

static void a_container_that_filters_clone_or_unshare_is_recognized(void **state)
{
    (void)state;
    probe_after(filter_clone);
    expect_no(CHECK_userns, "a system call filter on this process refuses it", "seccomp=unconfined");
    probe_after(filter_unshare);
    expect_no(CHECK_userns, "a right inside the namespace: Operation not permitted", "seccomp=unconfined");
}

static bool cover_devices(void) { return enter_namespaces() && mount("tmpfs", "/dev", "tmpfs", 0, NULL) == 0; }

static void without_the_fuse_device_its_module_is_the_remedy(void **state)
{
    (void)state;
    probe_after(cover_devices);
    expect_no(CHECK_fuse, "/dev/fuse: No such file or directory", "modprobe fuse");
    expect_no(CHECK_fuse_overlayfs, "not tried: it needs FUSE", "");
}

static bool cover_proc(void) { return enter_namespaces() && mount("tmpfs", "/proc/sys", "tmpfs", 0, NULL) == 0; }

static void where_parts_of_proc_are_covered_none_can_be_mounted(void **state)
{
    (void)state;
    probe_after(cover_proc);
    expect_no(CHECK_proc, "parts of this machine's own /proc are covered", "systempaths=unconfined");
}

static void the_cache_on_a_tmpfs_is_no_disk(void **state)
{
    struct fail fail = {0};
    char path[] = "/dev/shm/sluice-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(path));
    int code = probe_run(path, NULL, probe, &fail);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(code, 0);
    expect_no(CHECK_overlay_disk, "itself on a tmpfs", "--cache on a local disk");
}

/* ---- checks that misbehave ------------------------------------------------------------ */

static int hang(const struct probe_place *place, struct fail *fail)
{
    (void)place, (void)fail;
    return pause();
}

static int die(const struct probe_place *place, struct fail *fail)
{
    (void)place, (void)fail;
    return kill(getpid(), SIGKILL);
}

static void a_check_that_hangs_or_dies_fails(void **state)
{
    struct probe_place place = {.directory = -1};
    struct probe_result result;
    (void)state;
    probe_try(hang, 0, &place, 50, &result);
    assert_false(result.is_ok);
    assert_string_equal(result.text, "did not answer within 50 ms");
    probe_try(die, 0, &place, PROBE_LIMIT_MS, &result);
    assert_false(result.is_ok);
    assert_string_equal(result.text, "the process that tried it was killed");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- machines that this one is not ---------------------------------------------------- */

static void write_fact(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof(full), "%s/%s", directory, path);
    for (char *at = full + strlen(directory) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(full, 0755);
    }
    write_host_file(directory, path, text, 0644);
}

static struct kernel_info read_kernel_info(void)
{
    struct kernel_info kernel;
    int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    kernel_info_read(root, &kernel);
    close(root);
    return kernel;
}

static void what_the_kernel_says_is_read(void **state)
{
    (void)state;
    struct kernel_info none = read_kernel_info();
    assert_int_equal(none.userns_clone, KERNEL_INFO_UNKNOWN);
    assert_int_equal(none.seccomp, KERNEL_INFO_UNKNOWN);
    assert_false(none.is_container);
    write_fact("proc/sys/kernel/unprivileged_userns_clone", "0\n");
    write_fact("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    write_fact("proc/sys/user/max_net_namespaces", "77\n");
    write_fact("proc/self/status", "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    write_fact(".dockerenv", "");
    write_fact("proc/sys/kernel/pid_max", "many\n");
    struct kernel_info kernel = read_kernel_info();
    assert_int_equal(kernel.userns_clone, 0);
    assert_int_equal(kernel.apparmor_userns, 1);
    assert_int_equal(kernel.max_net, 77);
    assert_int_equal(kernel.seccomp, 2);
    assert_int_equal(kernel.pid_max, KERNEL_INFO_UNKNOWN);
    assert_true(kernel.is_container);
}

static struct probe_result find_remedy(enum probe_check check, int code, struct kernel_info kernel)
{
    struct probe_result result = {.is_tried = true, .code = code, .text = "why"};
    remedy_find(check, &kernel, &result);
    return result;
}

static const struct kernel_info plain = {
    .userns_clone = -1, .apparmor_userns = -1, .max_user = 1000, .seccomp = 0, .kernel_major = 6, .kernel_minor = 8};

static void each_machine_has_its_remedy(void **state)
{
    struct kernel_info ubuntu = plain, debian = plain, rhel8 = plain, rhel9 = plain;
    ubuntu.apparmor_userns = 1;
    debian.userns_clone = 0;
    rhel8.kernel_major = 4, rhel8.kernel_minor = 18;
    rhel9.kernel_major = 5, rhel9.kernel_minor = 14;
    const struct {
        enum probe_check check;
        int code;
        struct kernel_info kernel;
        const char *text, *remedy;
    } rows[] = {
        {CHECK_userns, -EPERM, ubuntu, "AppArmor", "> /etc/apparmor.d/sluice-worker && apparmor_parser -r"},
        {CHECK_userns, -EACCES, ubuntu, "AppArmor", "workers_test_probe\" flags=(unconfined)"},
        {CHECK_userns, -EPERM, debian, "kernel.unprivileged_userns_clone is 0", "kernel.unprivileged_userns_clone=1"},
        {CHECK_userns, -EINVAL, plain, "built or started without it", "CONFIG_USER_NS"},
        {CHECK_overlay_tmpfs, -EPERM, rhel8, "Linux 5.11", "install fuse-overlayfs"},
        {CHECK_overlay_tmpfs, -EIO, rhel9, "Linux 6.6", "overlay-disk"},
        {CHECK_overlay_tmpfs, -ENODEV, plain, "no overlay loaded", "modprobe overlay"},
        {CHECK_overlay_disk, -EINVAL, plain, "cannot hold what is written", "ext4, xfs or btrfs"},
        {CHECK_mounts, -ENOSYS, rhel8, "older than Linux 5.12", "a newer kernel"},
        {CHECK_fuse, -EACCES, plain, "why", "chmod 0666 /dev/fuse"},
        {CHECK_fuse_overlayfs, -ENOENT, plain, "why", "apt-get install fuse-overlayfs"},
        {CHECK_landlock, -EOPNOTSUPP, plain, "switched off", "lsm=landlock"},
        {CHECK_landlock, -ENOSYS, rhel8, "older than Linux 5.13", "a newer kernel"},
        {CHECK_apptainer, -ENOENT, plain, "why", "apt-get install apptainer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct probe_result got = find_remedy(rows[i].check, rows[i].code, rows[i].kernel);
        if (!strstr(got.text, rows[i].text) || !strstr(got.remedy, rows[i].remedy))
            fail_msg("row %zu: \"%s\", \"%s\"", i, got.text, got.remedy);
    }
}

/* ---- the doctor ----------------------------------------------------------------------- */

static void the_doctor_makes_a_sandbox_and_says_so(void **state)
{
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *out = open_memstream(&text, &size);
    enum doctor_status status = doctor_run(directory, "auto", NULL, true, out);
    fclose(out);
    assert_true(status == DOCTOR_WELL || status == DOCTOR_WEAK); /* this machine's limits may be low */
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    assert_string_equal(json_string_value(json_object_get(all, "tier")), tier_word((enum tier)0));
    assert_true(json_is_true(json_object_get(json_object_get(all, "sandbox"), "ok")));
    assert_int_equal(json_array_size(json_object_get(all, "checks")), CHECK_COUNT);
    assert_int_equal(json_integer_value(json_object_get(all, "status")), status);
    json_decref(all);
    free(text);
    assert_int_equal(rmdir(directory), 0); /* nothing left behind */
    assert_int_equal(mkdir(directory, 0755), 0);
}

/* What it prints about a tier where user namespaces are forbidden; its end. */
static int doctor_without_namespaces(const char *tier, char *said, size_t size)
{
    char path[128];
    int status;
    snprintf(path, sizeof(path), "%s/said", directory);
    pid_t pid = fork_bare();
    if (pid == 0) {
        FILE *out = fopen(path, "w");
        enum doctor_status end = forbid_user_namespaces() ? doctor_run(directory, tier, NULL, false, out) : 99;
        fclose(out);
        _exit((int)end);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    FILE *file = fopen(path, "r");
    assert_true(fread(said, 1, size - 1, file) > 0);
    fclose(file);
    return WEXITSTATUS(status);
}

static void the_doctor_of_a_machine_without_namespaces_says_none(void **state)
{
    static char said[8192];
    (void)state;
    assert_int_equal(doctor_without_namespaces("overlay-tmpfs", said, sizeof(said)), DOCTOR_NONE);
    assert_non_null(strstr(said, "no   user namespaces"));
    assert_non_null(strstr(said, "cure: as root: echo user.max_user_namespaces=63414"));
}

static void there_it_offers_landlock_where_that_is_new_enough(void **state)
{
    static char said[8192];
    (void)state;
    bool can = landlock_abi() >= LANDLOCK_ABI_NEEDED;
    assert_int_equal(doctor_without_namespaces("auto", said, sizeof(said)), can ? DOCTOR_WEAK : DOCTOR_NONE);
    assert_int_equal(strstr(said, "The tier: landlock\n  ok ") != NULL, can);
}

/* ---- tiers ---------------------------------------------------------------------------- */

static void every_tier_has_a_word_and_the_manual_its_table(void **state)
{
    char *table = NULL, path[512];
    static char manual[65536];
    size_t size = 0;
    enum tier tier;
    (void)state;
    for (int i = 0; i < TIER_COUNT; i++) {
        assert_true(tier_parse(tier_word((enum tier)i), &tier));
        assert_int_equal(tier, i);
    }
    assert_false(tier_parse("none", &tier));
    assert_false(tier_parse("", &tier));
    FILE *out = open_memstream(&table, &size);
    tier_print_markdown(out);
    fclose(out);
    snprintf(path, sizeof(path), "%s/docs/sandbox.md", getenv("SLUICE_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(manual, 1, sizeof(manual) - 1, file) > 0);
    fclose(file);
    if (!strstr(manual, table))
        fail_msg("docs/sandbox.md does not hold this table:\n%s", table);
    free(table);
}

#define PROBE_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        PROBE_TEST(where_all_is_well_the_best_tier_is_chosen_and_nothing_is_left),
        PROBE_TEST(a_directory_that_cannot_be_written_is_named),
        PROBE_TEST(without_user_namespaces_the_setting_is_named_and_the_rest_is_not_tried),
        PROBE_TEST(without_net_namespaces_only_the_network_is_refused),
        PROBE_TEST(a_container_that_filters_mount_is_recognized),
        PROBE_TEST(a_container_that_filters_clone_or_unshare_is_recognized),
        PROBE_TEST(without_the_fuse_device_its_module_is_the_remedy),
        PROBE_TEST(where_parts_of_proc_are_covered_none_can_be_mounted),
        PROBE_TEST(the_cache_on_a_tmpfs_is_no_disk),
        PROBE_TEST(a_check_that_hangs_or_dies_fails),
        PROBE_TEST(what_the_kernel_says_is_read),
        PROBE_TEST(each_machine_has_its_remedy),
        PROBE_TEST(the_doctor_makes_a_sandbox_and_says_so),
        PROBE_TEST(the_doctor_of_a_machine_without_namespaces_says_none),
        PROBE_TEST(there_it_offers_landlock_where_that_is_new_enough),
        PROBE_TEST(every_tier_has_a_word_and_the_manual_its_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) { return run_as_everyone(all_tests); }
