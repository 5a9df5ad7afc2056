/* The system call filter, call by call, in a process that took it on. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "workers/sandbox/container/confine.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/container/seccomp/seccomp_rules.h"

static int *results; /* negative errno of each row, from the child */

/* In a user namespace, whose rights container_confine gives up; by the bare call, since a sanitizer's
 * own thread would stand in the way of unshare. */
static void confine_and(void (*body)(void))
{
    int status;
    fflush(NULL);
    results = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(results != MAP_FAILED);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        struct container_plan plan = {.wanted = {.processes = 100000}};
        struct fail fail = {0};
        container_prepare_filter();
        if (container_confine(&plan, &fail) < 0) {
            fprintf(stderr, "%s\n", fail.text);
            _exit(2);
        }
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void finish(void) { munmap(results, 65536); }

#define CALL(name)                                                                                                     \
    {                                                                                                                  \
#name, __NR_##name                                                                                             \
    }
static const struct {
    const char *name;
    long call;
} denied[] =
    {
        CALL(mount),
        CALL(umount2),
        CALL(pivot_root),
        CALL(unshare),
        CALL(setns),
        CALL(chroot),
        CALL(open_tree),
        CALL(move_mount),
        CALL(fsopen),
        CALL(fsconfig),
        CALL(fsmount),
        CALL(fspick),
        CALL(mount_setattr),
        CALL(bpf),
        CALL(perf_event_open),
        CALL(keyctl),
        CALL(add_key),
        CALL(request_key),
        CALL(userfaultfd),
        CALL(io_uring_setup),
        CALL(io_uring_enter),
        CALL(io_uring_register),
        CALL(init_module),
        CALL(finit_module),
        CALL(delete_module),
        CALL(kexec_load),
        CALL(reboot),
        CALL(swapon),
        CALL(swapoff),
        CALL(quotactl),
        CALL(acct),
        CALL(open_by_handle_at),
        CALL(name_to_handle_at),
        CALL(fanotify_init),
        CALL(sched_setaffinity),
        CALL(syslog),
},
  unknown[] = {CALL(clone3), CALL(memfd_create), CALL(msgget), CALL(msgsnd)},
  /* Neighbours of those, and what every program calls: the filter itself answers nothing here. */
    allowed[] = {
        CALL(read),        CALL(write),       CALL(openat),
        CALL(close),       CALL(getppid),     CALL(sched_getaffinity),
        CALL(sched_yield), CALL(getsockname), CALL(fanotify_mark),
        CALL(setfsuid),    CALL(statx),       CALL(openat2),
        CALL(faccessat2),  CALL(close_range), CALL(epoll_pwait2),
        CALL(execveat),    CALL(ptrace),
};

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

/* Arguments that no call makes anything of, so that what is let through does nothing either. */
static int answer_to(long call) { return syscall(call, -1, -1, -1, -1, -1, -1) < 0 ? -errno : 0; }

static void call_all(void)
{
    size_t at = 0;
    for (size_t i = 0; i < ROWS(denied); i++)
        results[at++] = answer_to(denied[i].call);
    for (size_t i = 0; i < ROWS(unknown); i++)
        results[at++] = answer_to(unknown[i].call);
    for (size_t i = 0; i < ROWS(allowed); i++)
        results[at++] = answer_to(allowed[i].call);
}

static void each_call_is_refused_unknown_or_let_through(void **state)
{
    size_t at = 0;
    (void)state;
    confine_and(call_all);
    for (size_t i = 0; i < ROWS(denied); i++)
        if (results[at++] != -EPERM)
            fail_msg("%s: %s, not EPERM", denied[i].name, strerror(-results[at - 1]));
    for (size_t i = 0; i < ROWS(unknown); i++)
        if (results[at++] != -ENOSYS)
            fail_msg("%s: %s, not ENOSYS", unknown[i].name, strerror(-results[at - 1]));
    for (size_t i = 0; i < ROWS(allowed); i++, at++)
        if ((results[at] == -EPERM && allowed[i].call != __NR_ptrace) || results[at] == -ENOSYS)
            fail_msg("%s: %s", allowed[i].name, strerror(-results[at]));
    finish();
}

static int made(long got) { return got < 0 ? -errno : 0; }

static void call_with_arguments(void)
{
    size_t at = 0;
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    for (size_t i = 0; i < ROWS(families); i++)
        results[at++] = made(socket(families[i], SOCK_DGRAM, 0));
    for (int family = 0; family < 64; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
            results[at++] = made(socket(family, SOCK_RAW, 0));
}

static void only_four_families_of_sockets_can_be_made(void **state)
{
    (void)state;
    confine_and(call_with_arguments);
    for (size_t i = 0; i < 4; i++)
        assert_true(results[i] == 0 || results[i] == -EAFNOSUPPORT); /* a kernel may lack IPv6 */
    assert_int_equal(results[0], 0);
    for (size_t i = 4; i < 64; i++)
        assert_int_equal(results[i], -EAFNOSUPPORT);
    finish();
}

static void call_clone_and_ioctl(void)
{
    static const unsigned long flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                          CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    size_t at = 0;
    for (size_t i = 0; i < ROWS(flags); i++)
        results[at++] = made(syscall(__NR_clone, flags[i] | SIGCHLD, NULL, NULL, NULL, NULL));
    results[at++] = made(ioctl(0, TIOCSTI, "x"));
    results[at++] = made(ioctl(0, TIOCLINUX, "x"));
    results[at++] = made(ioctl(-1, FIONREAD, &at));
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    results[at++] = made(pid);
    waitpid(pid, NULL, 0);
}

static void forks_go_on_and_namespaces_do_not(void **state)
{
    (void)state;
    confine_and(call_clone_and_ioctl);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(results[i], -EPERM);
    assert_int_equal(results[9], -EBADF);
    assert_int_equal(results[10], 0);
    finish();
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_is_refused_unknown_or_let_through),
        cmocka_unit_test(only_four_families_of_sockets_can_be_made),
        cmocka_unit_test(forks_go_on_and_namespaces_do_not),
    };
    return cmocka_run_group_tests_name("confine", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
