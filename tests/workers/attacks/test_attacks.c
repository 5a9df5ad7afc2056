/* Calls, sockets and files by which those inside reach for what is outside: each exact refusal. */
#include "tests/workers/attacks/attack_world.h"
#include "workers/sandbox/requests.h"

#include <stddef.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

FIBER_TEST(system_calls_that_reach_for_more_are_refused_each_by_its_errno)
{
    static const struct attempt rows[] = {
        {"unshare-user", "EPERM"},
        {"clone-user", "EPERM"},
        {"unshare-mnt", "EPERM"},
        {"clone-mnt", "EPERM"},
        {"unshare-pid", "EPERM"},
        {"clone-pid", "EPERM"},
        {"unshare-net", "EPERM"},
        {"clone-net", "EPERM"},
        {"unshare-ipc", "EPERM"},
        {"clone-ipc", "EPERM"},
        {"unshare-uts", "EPERM"},
        {"clone-uts", "EPERM"},
        {"unshare-cgroup", "EPERM"},
        {"clone-cgroup", "EPERM"},
        {"clone3", "ENOSYS"},
        {"setns-own", "EPERM"},
        {"setns-pid-1", "EPERM"},
        {"mount-tmpfs", "EPERM"},
        {"mount-bind", "EPERM"},
        {"mount-remount", "EPERM"},
        {"umount-proc", "EPERM"},
        {"pivot_root", "EPERM"},
        {"chroot", "EPERM"},
        {"open_tree", "EPERM"},
        {"fsopen", "EPERM"},
        {"fsconfig", "EPERM"},
        {"fsmount", "EPERM"},
        {"fspick", "EPERM"},
        {"open_tree_attr", "ENOSYS"},
        {"move_mount", "EPERM"},
        {"mount_setattr", "EPERM"},
        {"mknod-disk", "EPERM"},
        {"mknod-mem", "EPERM"},
        {"bpf", "EPERM"},
        {"perf_event_open", "EPERM"},
        {"io_uring_setup", "EPERM"},
        {"io_uring_enter", "EPERM"},
        {"io_uring_register", "EPERM"},
        {"userfaultfd", "EPERM"},
        {"keyctl", "EPERM"},
        {"add_key", "EPERM"},
        {"request_key", "EPERM"},
        {"kexec_load", "EPERM"},
        {"kexec_file_load", "EPERM|ENOSYS"},
        {"init_module", "EPERM"},
        {"finit_module", "EPERM"},
        {"delete_module", "EPERM"},
        {"reboot", "EPERM"},
        {"swapon", "EPERM"},
        {"swapoff", "EPERM"},
        {"acct", "EPERM"},
        {"quotactl", "EPERM"},
        {"syslog", "EPERM"},
        {"open_by_handle_at", "EPERM"},
        {"name_to_handle_at", "EPERM"},
        {"fanotify_init", "EPERM"},
        {"memfd_create", "ENOSYS"},
        {"memfd_secret", "ENOSYS"},
        {"msgget", "ENOSYS"},
        {"msgget-named", "ENOSYS"},
        {"msgsnd", "ENOSYS"},
        {"semget-64", "done"},
        {"semget-65", "EINVAL"},
        {"semget-32000", "EINVAL"},
        {"semget--1", "EINVAL"},
        {"settimeofday", "EPERM"},
        {"sethostname", "EPERM"},
#ifdef __x86_64__
        {"iopl", "EPERM|ENOSYS"},
        {"ioperm", "EPERM|ENOSYS"},
        {"x32-getpid", "ENOSYS"},
#endif
        {"ptrace-pid-1", "EPERM"},
        {"ptrace-seize-pid-1", "EPERM"},
        {"process_vm_readv-pid-1", "EPERM"},
        {"process_vm_writev-pid-1", "EPERM"},
        {"pidfd_getfd-pid-1", "EPERM"},
        {"limit-pid-1", "EPERM"},
        {"nice-pid-1", "EPERM"},
        {"nice-all", "EPERM"},
        {"nice-all-by-number", "EPERM"},
        {"io-pid-1", "EPERM"},
        {"io-all", "EPERM"},
        {"io-self", "done"},
        {"idle-pid-1", "EPERM"},
        {"nice-self", "done"},
        {"limit-self", "done"},
        {"signals-to-pid-1", "done"},
        {"setuid-0", "EINVAL|EPERM"},
        {"setresuid-1", "EINVAL|EPERM"},
        {"setgroups", "EPERM"},
        {"capset", "EPERM"},
        {"ambient", "EPERM"},
        {"no_new_privs-off", "EINVAL"},
        {"seccomp-off", "EINVAL"},
        {"chown-0", "EINVAL|EPERM"},
        {"nice", "EACCES"},
        {"realtime", "EPERM"},
        {"sched_setaffinity", "EPERM"},
        {"oom_score_adj", "EACCES|EROFS", "EROFS"},
        {"TIOCSTI", "EPERM"},
        {"TIOCLINUX", "EPERM"},
        {"open-tty", "ENXIO"},
        {"open-console", "ENOENT"},
#ifdef __x86_64__
        {"int-0x80", "SYS"},
#endif
    };
    struct sandbox_plan plan = host_plan();
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_attacked(&plan);
    expect_attempts(sandbox, "calls", rows, ROWS(rows));
    expect_works(sandbox);
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

/* A listener of the host's: abstract, on a port, on a path. */
static int listen_on(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, address, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

FIBER_TEST(sockets_reach_nothing_outside)
{
    static const struct attempt rows[] = {
        {"packet", "EAFNOSUPPORT"},
        {"packet-dgram", "EAFNOSUPPORT"},
        {"vsock", "EAFNOSUPPORT"},
        {"alg", "EAFNOSUPPORT"},
        {"bluetooth", "EAFNOSUPPORT"},
        {"key", "EAFNOSUPPORT"},
        {"tipc", "EAFNOSUPPORT"},
        {"rds", "EAFNOSUPPORT"},
        {"xdp", "EAFNOSUPPORT"},
        {"can", "EAFNOSUPPORT"},
        {"raw", "EPERM"},
        {"raw-icmp", "EPERM"},
        {"raw-6", "EPERM|EAFNOSUPPORT"},
        {"ping", "EACCES"},
        {"netlink-link", "EPERM"},
        {"netlink-audit", "EPERM|EPROTONOSUPPORT"},
        {"abstract", "ECONNREFUSED"},
        {"host-port", "ECONNREFUSED"},
        {"host-socket", "ENOENT"},
        {"internet", "ENETUNREACH"},
        {"metadata", "ENETUNREACH"},
        {"dns", "ENETUNREACH"},
        {"ipv6", "ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT"},
        {"multicast", "ENETUNREACH"},
    };
    char words[512];
    struct sockaddr_un path = {.sun_family = AF_UNIX}, name = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(port);
    snprintf(path.sun_path, sizeof(path.sun_path), "%s/host.sock", directory);
    snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "sluice-test-%d", getpid());
    socklen_t name_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1));
    AUTO_CLOSE int by_path = listen_on(AF_UNIX, &path, sizeof(path));
    AUTO_CLOSE int by_name = listen_on(AF_UNIX, &name, name_len);
    AUTO_CLOSE int by_port = listen_on(AF_INET, &port, sizeof(port));
    assert_int_equal(getsockname(by_port, (struct sockaddr *)&port, &len), 0);
    assert_true(by_path >= 0 && by_name >= 0);
    snprintf(words, sizeof(words), "sockets %s %u %s", name.sun_path + 1, ntohs(port.sin_port), path.sun_path);
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = open_attacked(&plan);
    expect_attempts(sandbox, words, rows, ROWS(rows));
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

FIBER_TEST(proc_the_image_and_the_worker_cannot_be_read_or_written)
{
    char words[512], secret[128], mem[64];
    int segment = shmget(0x51c3, 4096, 0666 | IPC_CREAT);
    write_host_file(directory, "secret", "of the worker", 0666);
    snprintf(secret, sizeof(secret), "%s/secret", directory);
    snprintf(mem, sizeof(mem), "/proc/%d/mem", getpid());
    const struct attempt rows[] = {
        {"/proc/1/mem", "EACCES"},
        {"/proc/1/environ", "EACCES"},
        {"/proc/1/maps", "EACCES"},
        {"/proc/1/auxv", "EACCES"},
        {"/proc/1/root/etc/passwd", "EACCES"},
        {"/proc/1/fd/3", "EACCES"},
        {"/proc/kcore", "ENOENT|EACCES|EPERM", "ENOENT|empty"},
        {"/dev/mem", "ENOENT"},
        {"/dev/kmsg", "ENOENT"},
        {"/dev/port", "ENOENT"},
        {"/dev/sda", "ENOENT"},
        {"/dev/kvm", "ENOENT"},
        {"/dev/fuse", "ENOENT"},
        {"/dev/net/tun", "ENOENT"},
        {"/dev/userfaultfd", "ENOENT"},
        {"/dev/loop-control", "ENOENT"},
        {"exe-of-pid-1", "EACCES"},
        {"descriptor-of-pid-1", "EACCES"},
        {"root-of-pid-1", "EACCES"},
        {"outside-pid", "ENOENT"},
        {"outside-shm", "ENOENT"},
        {"/proc/sys/kernel/core_pattern", "EACCES|EROFS", "EROFS"},
        {"/proc/sys/kernel/hostname", "EACCES|EROFS", "EROFS"},
        {"/proc/sys/user/max_user_namespaces", "EACCES"},
        {"/proc/sys/net/ipv4/ip_forward", "EACCES|EROFS", "EROFS"},
        {"/proc/sysrq-trigger", "EACCES|ENOENT", "EROFS|ENOENT"},
        {"/proc/self/uid_map", "EPERM|EROFS", "EROFS"},
        {"/proc/self/setgroups", "EACCES|EROFS", "EROFS"},
        {"/proc/1/oom_score_adj", "EACCES|EROFS", "EROFS"},
        {"commands-write", "EROFS"},
        {"image-write", "EACCES|EROFS", "EROFS"},
        {"image-create", "EACCES|EROFS", "EROFS"},
        {"image-remove", "EROFS"},
        {secret, "ENOENT"},
        {mem, "ENOENT"},
        {"/etc/shadow", "EACCES", "empty"},
    };
    snprintf(words, sizeof(words), "proc %d %d %s %s /etc/shadow", getpid(), 0x51c3, secret, mem);
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = open_attacked(&plan);
    expect_attempts(sandbox, words, rows, ROWS(rows));
    expect_works(sandbox);
    sandbox_close(&sandbox);
    shmctl(segment, IPC_RMID, NULL);
}

FIBER_TEST(limits_are_not_raised_and_descriptors_end)
{
    static const struct attempt rows[] = {{"NPROC", "EPERM"}, {"NOFILE", "EPERM"},     {"FSIZE", "EPERM"},
                                          {"CORE", "EPERM"},  {"descriptors", "4093"}, {"one-more", "EMFILE"}};
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = open_attacked(&plan);
    expect_attempts(sandbox, "limits", rows, ROWS(rows));
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

/* An image of the task's own, with what its owner may: a program of root's with the setuid bit. */
FIBER_TEST(a_setuid_program_of_the_image_gives_nothing_and_the_image_is_not_written)
{
    const bool can_write = fixture_tier != TIER_apptainer; /* to a container's own copy */
    const unsigned uid = inside_uid();
    char script[1024], image[128], who[128], *text;
    make_dir(image, sizeof(image), "image");
    snprintf(script, sizeof(script),
             "cd %s && mkdir -p bin usr/bin etc && cp -L --parents /usr/bin/bash . && cp "
             "%s/tests/workers_attack usr/bin/who && "
             "chmod 6755 usr/bin/who && rmdir bin && ln -s usr/bin bin && echo original > etc/file && "
             "for f in $(ldd /usr/bin/bash usr/bin/who | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L "
             "--parents $f .; done",
             image, getenv("SLUICE_BINARY_DIR"));
    assert_int_equal(system(script), 0);
    struct sandbox_plan plan = host_plan();
    plan.image = image;
    struct sandbox *sandbox = open_sandbox(&plan);
    snprintf(who, sizeof(who), "uid %u %u %u %u secure 0 no_new_privs 1\n", uid, uid, uid, uid);
    expect_text(sandbox, "who who", who);
    expect_status(sandbox, "echo changed > /etc/file && type rm >/dev/null 2>&1; : > /usr/bin/who; : > /etc/more",
                  !can_write);
    run_text(sandbox, "read x < /etc/file; echo $x", &text);
    assert_string_equal(text, can_write ? "changed\n" : "original\n");
    free(text);
    sandbox_close(&sandbox);
    snprintf(script, sizeof(script),
             "cd %s && test \"$(cat etc/file)\" = original && test -s usr/bin/who && test ! -e etc/more", image);
    assert_int_equal(system(script), 0);
}

/* The kernel says which process is which only within one sandbox: -1 is all of that one. */
FIBER_TEST(killing_everybody_kills_only_ones_own)
{
    pid_t pid;
    struct fail fail = {0};
    struct sandbox *neighbour = open_neighbour(), *sandbox = open_host();
    const char *sleeper[] = {"/bin/sleep", "1000", NULL};
    assert_int_equal(sandbox_start(neighbour, &(struct sandbox_exec){.argv = sleeper}, &pid, &fail), 0);
    expect_text(sandbox, "exec 2>/dev/null; sleep 1000 & kill -9 -1; wait $!; echo $?", "137\n");
    expect_status(sandbox, "for p in {1..4000}; do [ $p = $$ ] || kill -9 $p; done 2>/dev/null; true", 0);
    expect_works(sandbox);
    expect_text(neighbour, "grep -ls sleep /proc/[0-9]*/comm | wc -l", "1\n");
    sandbox_close(&sandbox);
    expect_unharmed(&neighbour);
}

/* Whatever those inside make of the paths that the worker opens, it waits for none of them. */
FIBER_TEST(what_the_worker_opens_can_be_no_trap)
{
    static const struct {
        const char *path;
        int code; /* or 1: any refusal, which one differs with who runs the worker */
    } rows[] = {{"fifo", -EINVAL},    {"loop", -ELOOP},       {"socket", -ENXIO},
                {"up", -ENOENT},      {"/proc/self/mem", 1},  {"/proc/1/mem", 1},
                {"/dev/tty", -ENXIO}, {"/dev/null", -EINVAL}, {"/proc/self/root/etc", -ELOOP}};
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    expect_status(sandbox,
                  "mkfifo fifo; ln -s loop loop; ln -s ../../../../../tmp/sluice-none up; python3 -c "
                  "'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'",
                  0);
    for (size_t i = 0; i < ROWS(rows); i++) {
        int fd = sandbox_open_file(sandbox, rows[i].path, O_RDONLY, 0, &fail);
        bool is_right = rows[i].code == 1 ? fd == -EINVAL || fd == -EACCES : fd == rows[i].code;
        if (!is_right)
            print_message("%s: %d, not %d: %s\n", rows[i].path, fd, rows[i].code, fail.text);
        assert_true(is_right);
    }
    expect_works(sandbox);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(system_calls_that_reach_for_more_are_refused_each_by_its_errno),
        TEST(sockets_reach_nothing_outside),
        TEST(proc_the_image_and_the_worker_cannot_be_read_or_written),
        TEST(limits_are_not_raised_and_descriptors_end),
        TEST(a_setuid_program_of_the_image_gives_nothing_and_the_image_is_not_written),
        TEST(killing_everybody_kills_only_ones_own),
        TEST(what_the_worker_opens_can_be_no_trap),
    };
    return cmocka_run_group_tests_name("attacks", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
