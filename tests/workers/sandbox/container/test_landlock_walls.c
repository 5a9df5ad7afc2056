/* Sandboxes without namespaces: whom and what the processes inside cannot reach, though all is the same user's. */
#include "tests/workers/sandbox/landlock_world.h"
#include "workers/sandbox/spawner_start.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* Runs Python that is to end with an exception of the errno. */
static void expect_refused(struct sandbox *sandbox, const char *refusal, const char *format, ...)
{
    char code[2048], command[4096], *text;
    va_list args;
    va_start(args, format);
    vsnprintf(code, sizeof(code), format, args);
    va_end(args);
    snprintf(command, sizeof(command),
             "python3 -c '\nimport os, socket, ctypes, errno\nc = ctypes.CDLL(None, use_errno=True)\n"
             "def call(*a):\n  if c.syscall(*a) < 0: raise OSError(ctypes.get_errno(), \"\")\n  return "
             "0\n"
             "try:\n  %s\n  print(\"was let\")\nexcept OSError as e:\n  "
             "print(errno.errorcode[e.errno])\n'",
             code);
    run_text(sandbox, command, &text);
    if (strcmp(text, refusal) != 0)
        fail_msg("%s: %snot %s", code, text, refusal);
    free(text);
}

/* ---- files -------------------------------------------------------------------------------- */

FIBER_TEST(files_beyond_the_image_and_the_container_are_out_of_reach)
{
    struct sandbox *sandbox = open_host();
    write_host_file(directory, "id_rsa", "secret", 0644);
    expect_end(sandbox, 1, "cat %s/id_rsa", directory);
    expect_end(sandbox, 2, "ls %s", directory);
    expect_end(sandbox, 1, "echo x >> %s/id_rsa", directory);
    expect_end(sandbox, 1, "echo x > %s/new", directory);
    expect_end(sandbox, 1, "rm %s/id_rsa", directory);
    expect_end(sandbox, 1, "mv %s/id_rsa .", directory);
    expect_end(sandbox, 1, "ln %s/id_rsa .", directory);
    expect_end(sandbox, 1, "truncate -s 0 %s/id_rsa", directory);
    expect_end(sandbox, 1, "mkdir %s/new", directory);
    expect_end(sandbox, 1, "ln -s %s/id_rsa link && cat link", directory);
    expect_status(sandbox, "cat /etc/shadow", 1);
    expect_status(sandbox, "ls /root /home /dev/shm /dev/pts /sys /run /var/tmp", 2);
    expect_status(sandbox, "echo x > /etc/new || echo x > /usr/new || echo x > /dev/shm/new || echo x > /tmp/new", 1);
    expect_status(sandbox, "touch $SLUICE_WORKSPACE/../new || touch $SLUICE_WORKSPACE/../../run/new", 1);
    expect_status(sandbox, "echo x > /proc/self/oom_score_adj", 1);
    sandbox_close(&sandbox);
    char path[256];
    struct stat it;
    snprintf(path, sizeof(path), "%s/id_rsa", directory);
    assert_int_equal(stat(path, &it), 0);
    assert_int_equal(it.st_size, 6);
}

FIBER_TEST(another_container_is_out_of_reach)
{
    struct sandbox *one = open_host(), *other = open_host();
    char *home;
    expect_status(other, "echo hidden > answer", 0);
    run_text(other, "printf %s $PWD", &home);
    expect_end(one, 1, "cat %s/answer", home);
    expect_end(one, 1, "echo x > %s/new", home);
    expect_end(one, 2, "ls %s", home);
    expect_end(one, 1, "chmod 777 %s/answer", home);
    expect_text(other, "cat answer; stat -c %a answer; ls", "hidden\n644\nanswer\n");
    free(home);
    sandbox_close(&one);
    sandbox_close(&other);
}

FIBER_TEST(modes_owners_and_times_of_other_files_stay)
{
    char path[256];
    struct stat before, after;
    struct sandbox *sandbox = open_host();
    write_host_file(directory, "mine", "", 0644);
    snprintf(path, sizeof(path), "%s/mine", directory);
    assert_int_equal(stat(path, &before), 0);
    expect_end(sandbox, 1, "chmod 777 %s", path);
    expect_end(sandbox, 1, "ln -s %s link; chmod 777 link", path);
    expect_end(sandbox, 1, "touch -c -d @5 %s", path);
    expect_end(sandbox, 1, "chown $(id -u) %s", path);
    expect_refused(sandbox, "EPERM\n", "os.chmod(\"/proc/self/cwd/../../../../../../../../..%s\", 0o777)", path);
    expect_refused(sandbox, "EPERM\n", "os.chdir(\"%s\"); os.chmod(\"mine\", 0o777)", directory);
    expect_refused(sandbox, "EPERM\n", "os.chmod(\"mine\", 0o777, dir_fd=os.open(\"%s\", os.O_PATH))", directory);
    expect_refused(sandbox, "EPERM\n", "os.fchmod(os.open(\"/bin/true\", os.O_RDONLY), 0o4755)");
    expect_refused(sandbox, "EPERM\n", "os.utime(os.open(\"/bin/true\", os.O_RDONLY), (5, 5))");
    expect_refused(sandbox, "EPERM\n", "os.chmod(os.environ[\"SLUICE_WORKSPACE\"] + \"/../../run\", 0)");
    expect_refused(sandbox, "ENOTSUP\n", "os.setxattr(\"%s\", \"user.x\", b\"x\")", path);
    sandbox_close(&sandbox);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
}

/* ---- processes ---------------------------------------------------------------------------- */

FIBER_TEST(no_process_of_the_user_can_be_signalled_traced_or_slowed)
{
    struct sandbox *sandbox = open_host();
    pid_t stranger = start_stranger(), worker = getpid();
    expect_end(sandbox, 1, "kill -9 %d", stranger);
    expect_end(sandbox, 1, "kill -0 %d", worker);
    expect_end(sandbox, 1, "kill -9 $PPID; kill -0 $PPID"); /* the container's first process */
    expect_end(sandbox, 1, "kill -9 %d", spawner_pid(spawner));
    expect_end(sandbox, 1, "cat /proc/%d/environ || cat /proc/%d/mem || readlink /proc/%d/fd/0", stranger, worker,
               worker);
    expect_end(sandbox, 1, "ls /proc/%d/root/ || echo x > /proc/%d/mem", stranger, worker);
    expect_refused(sandbox, "EPERM\n", "call(%d, 16, %d, 0, 0)", __NR_ptrace, stranger);
    expect_refused(sandbox, "EPERM\n", "call(%d, %d, 0, 0, 0, 0, 0)", __NR_process_vm_readv, stranger);
    expect_refused(sandbox, "EPERM\n", "call(%d, os.pidfd_open(%d), 9, 0, 0)", __NR_pidfd_send_signal, stranger);
    expect_refused(sandbox, "EPERM\n", "os.setpriority(os.PRIO_PROCESS, %d, 19)", stranger);
    expect_refused(sandbox, "EPERM\n", "os.setpriority(os.PRIO_USER, 0, 19)");
    expect_refused(sandbox, "EPERM\n", "os.sched_setscheduler(%d, os.SCHED_BATCH, os.sched_param(0))", stranger);
    expect_refused(sandbox, "EPERM\n", "import resource; resource.prlimit(%d, resource.RLIMIT_NOFILE, (0, 0))",
                   stranger);
    expect_text(sandbox, "sleep 100 & kill $! && wait $!; echo $?", "143\n");
    expect_text(sandbox, "timeout 0.1 sleep 100; echo $?", "124\n");
    sandbox_close(&sandbox);
    end_stranger(stranger);
}

FIBER_TEST(nobody_inside_has_a_right_or_can_gain_one)
{
    struct sandbox *sandbox = open_host();
    expect_text(sandbox,
                "grep -E '^(CapInh|CapPrm|CapEff|CapAmb)' /proc/self/status | tr -d '0\\n\\t'; "
                "grep NoNewPrivs /proc/self/status",
                "CapInh:CapPrm:CapEff:CapAmb:NoNewPrivs:\t1\n");
    if (geteuid() == 0)
        expect_text(sandbox, "grep CapBnd /proc/self/status", "CapBnd:\t0000000000000000\n");
    expect_status(sandbox, "unshare -U true || unshare -m true || mount -t tmpfs x . || false", 1);
    sandbox_close(&sandbox);
}

/* ---- sockets and memory of the machine ------------------------------------------------------ */

static int listen_unix(const char *name, bool is_abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path + is_abstract, name);
    socklen_t len = is_abstract ? (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))
                                : sizeof(address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

FIBER_TEST(no_socket_of_the_host_can_be_reached)
{
    char path[128], name[64];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    struct sandbox *sandbox = open_host();
    int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(tcp, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(tcp, 1), 0);
    assert_int_equal(getsockname(tcp, (struct sockaddr *)&address, &len), 0);
    snprintf(path, sizeof(path), "%s/socket", directory);
    snprintf(name, sizeof(name), "sluice-test-%d", getpid());
    int named = listen_unix(path, false), abstract = listen_unix(name, true);
    expect_end(sandbox, 1, "exec 3<>/dev/tcp/127.0.0.1/%d", ntohs(address.sin_port));
    expect_refused(sandbox, "EPERM\n", "socket.socket(socket.AF_UNIX).connect(\"%s\")", path);
    expect_refused(sandbox, "EPERM\n", "socket.socket(socket.AF_UNIX).connect(\"\\0%s\")", name);
    expect_refused(sandbox, "EPERM\n", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)");
    expect_refused(sandbox, "EPERM\n", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)");
    expect_refused(sandbox, "EPERM\n", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b\"x\", \"%s\")",
                   path);
    expect_refused(sandbox, "EPERM\n", "socket.socketpair()[0].connect(\"%s\")", path);
    expect_refused(sandbox, "was let\n", "a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"");
    sandbox_close(&sandbox);
    close(tcp);
    close(named);
    close(abstract);
}

FIBER_TEST(no_shared_memory_of_the_host_can_be_reached)
{
    struct sandbox *sandbox = open_host();
    int segment = shmget(IPC_PRIVATE, 4096, 0600);
    assert_true(segment >= 0);
    expect_refused(sandbox, "ENOSYS\n", "call(%d, %d, 0, 0)", __NR_shmat, segment);
    expect_refused(sandbox, "ENOSYS\n", "call(%d, 0, 4096, 0o600)", __NR_shmget);
    assert_int_equal(shmctl(segment, IPC_RMID, NULL), 0);
    sandbox_close(&sandbox);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        PLAIN_TEST(files_beyond_the_image_and_the_container_are_out_of_reach),
        PLAIN_TEST(another_container_is_out_of_reach),
        PLAIN_TEST(modes_owners_and_times_of_other_files_stay),
        PLAIN_TEST(no_process_of_the_user_can_be_signalled_traced_or_slowed),
        PLAIN_TEST(nobody_inside_has_a_right_or_can_gain_one),
        PLAIN_TEST(no_socket_of_the_host_can_be_reached),
        PLAIN_TEST(no_shared_memory_of_the_host_can_be_reached),
    };
    return cmocka_run_group_tests_name("landlock walls", tests, NULL, NULL);
}

int main(void)
{
    if (landlock_abi() < LANDLOCK_ABI_NEEDED) {
        printf("SKIPPED: the kernel has no Landlock of ABI %d\n", LANDLOCK_ABI_NEEDED);
        return SKIPPED;
    }
    return run_as_everyone(group);
}
