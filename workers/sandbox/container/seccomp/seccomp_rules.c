#include "workers/sandbox/container/seccomp/seccomp_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Refused with EPERM: namespaces, mounts, the kernel's inner life, leaving one's CPUs. */
static const uint32_t denied_calls[] = {
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_unshare,
    __NR_setns,
    __NR_chroot,
    __NR_open_tree,
    __NR_move_mount,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_mount_setattr,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_userfaultfd,
    __NR_io_uring_setup,
    __NR_io_uring_enter,
    __NR_init_module,
    __NR_finit_module,
    __NR_io_uring_register,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_quotactl,
    __NR_acct,
    __NR_open_by_handle_at,
    __NR_name_to_handle_at,
    __NR_fanotify_init,
    __NR_sched_setaffinity,
    __NR_syslog,
#ifdef __NR_quotactl_fd
    __NR_quotactl_fd,
#endif
};

/* Answered as by a kernel without them. clone3 hides its flags from filters (libc falls back
 * to clone); io_setup takes of 65,536 events of the whole machine; memory of the others is in no
 * process's account: 32,000 message queues hold 32 GiB. */
static const uint32_t unknown_calls[] = {
    __NR_clone3,       __NR_io_setup, __NR_memfd_create, __NR_msgget, __NR_msgsnd,
#ifdef __NR_memfd_secret
    __NR_memfd_secret,
#endif
};

static const uint32_t socket_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
static const uint32_t denied_ioctls[] = {TIOCSTI, TIOCLINUX};

static const uint32_t new_namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                                       CLONE_NEWUTS | CLONE_NEWCGROUP;

/* Pipes of other sizes are paid for by all of the user's; leases and notes on directories hold for a file of the
 * host's, too. */
static const uint32_t denied_commands[] = {F_SETPIPE_SZ, F_SETLEASE, F_NOTIFY};

/* Passed over, as the kernel passes over what is above the machine's limit. */
static const uint32_t buffer_options[] = {SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE};

/* Of one set; the kernel's own limit is 32,000, in each of as many sets. */
static const uint32_t semaphores_max = 64;

/* pid 1 has the same user: its limits and its share of the CPUs are not for those inside. */
static const uint32_t own_process = 0, first_process = 1;

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NOT_OF_FIRST(call, number)                                                                                     \
    {                                                                                                                  \
        call, number, BPF_JEQ, &first_process, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW                         \
    }

static const struct seccomp_argument argument_rules[] = {
    {__NR_clone, 0, BPF_JSET, &new_namespaces, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW},
    {__NR_ioctl, 1, BPF_JEQ, denied_ioctls, COUNT(denied_ioctls), SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW},
    {__NR_socket, 0, BPF_JEQ, socket_families, COUNT(socket_families), SECCOMP_RET_ALLOW,
     SECCOMP_RET_ERRNO | EAFNOSUPPORT},
    {__NR_semget, 1, BPF_JGT, &semaphores_max, 1, SECCOMP_RET_ERRNO | EINVAL, SECCOMP_RET_ALLOW},
    {__NR_prlimit64, 0, BPF_JEQ, &own_process, 1, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM},
    NOT_OF_FIRST(__NR_setpriority, 1),
    NOT_OF_FIRST(__NR_sched_setscheduler, 0),
    NOT_OF_FIRST(__NR_sched_setparam, 0),
    NOT_OF_FIRST(__NR_sched_setattr, 0),
};

/* In every tier. */
static const struct seccomp_argument shared_rules[] = {
    {__NR_fcntl, 1, BPF_JEQ, denied_commands, COUNT(denied_commands), SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW},
    {__NR_setsockopt, 2, BPF_JEQ, buffer_options, COUNT(buffer_options), SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW, true, 1,
     SOL_SOCKET},
};

/* Made once, for all containers: container_prepare_filter. */
static struct seccomp_filter filter;

/* What a fork server of kernels needs all the same. */
static bool is_of_servers(uint32_t call) { return call == __NR_setns || call == __NR_sched_setaffinity; }

void container_deny_calls(struct seccomp_rules *rules, bool is_server)
{
    for (size_t i = 0; i < COUNT(denied_calls); i++)
        if (!is_server || !is_of_servers(denied_calls[i]))
            seccomp_add(rules, &denied_calls[i], 1, SECCOMP_RET_ERRNO | EPERM);
    seccomp_add(rules, unknown_calls, COUNT(unknown_calls), SECCOMP_RET_ERRNO | ENOSYS);
    seccomp_add_arguments(rules, shared_rules, COUNT(shared_rules));
}

static void make_filter(bool is_server)
{
    struct seccomp_rules rules = {.count = 0};
    container_deny_calls(&rules, is_server);
    seccomp_add_arguments(&rules, argument_rules, COUNT(argument_rules));
    seccomp_make(&filter, &rules);
}

void container_prepare_filter(void) { make_filter(false); }

void container_prepare_server_filter(void) { make_filter(true); }

int container_apply_filter(struct fail *fail) { return seccomp_apply(&filter, 0, fail); }

struct slice container_filter(void)
{
    return slice_of((const uint8_t *)filter.code, filter.len * sizeof(*filter.code));
}
