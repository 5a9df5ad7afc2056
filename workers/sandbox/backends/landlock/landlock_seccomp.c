/* The system calls that rulesets of Landlock do not hold back, where there are no namespaces either. */
#include "workers/sandbox/backends/landlock/landlock_seccomp.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/container/landlock.h"
#include "workers/sandbox/container/seccomp/seccomp_notify.h"
#include "workers/sandbox/backends/landlock/landlock_container.h"
#include "workers/sandbox/container/seccomp/seccomp_rules.h"
#include "workers/sandbox/proto/wire.h"

#ifndef FS_IOC_ENABLE_VERITY
#define FS_IOC_ENABLE_VERITY _IOW('f', 133, uint8_t[128])
#endif

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define DENY (SECCOMP_RET_ERRNO | EPERM)

/* Other processes, other addresses than a socket pair's, and attributes of files by name. */
static const uint32_t refused[] = {
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_pidfd_getfd,
    __NR_process_madvise,
    __NR_move_pages,
    __NR_migrate_pages,
    __NR_setpriority,
    __NR_ioprio_set,
    __NR_socket,
    __NR_connect,
    __NR_bind,
    __NR_listen,
#ifdef __NR_process_mrelease
    __NR_process_mrelease,
#endif
};

/* Memory, queues and watches that belong to the whole machine; old forms of calls that seccomp_notify.h serves. */
static const uint32_t unknown[] = {
    __NR_shmget,
    __NR_shmat,
    __NR_shmctl,
    __NR_msgrcv,
    __NR_msgctl,
    __NR_semget,
    __NR_semop,
    __NR_semctl,
    __NR_semtimedop,
    __NR_mq_open,
    __NR_mq_unlink,
    __NR_inotify_init1,
#ifdef __NR_inotify_init
    __NR_inotify_init,
    __NR_utime,
    __NR_utimes,
    __NR_futimesat,
#endif
    452 /* fchmodat2, the same on all architectures */,
};

/* As by a file system without them. */
static const uint32_t unsupported[] = {
    __NR_setxattr, __NR_lsetxattr, __NR_fsetxattr, __NR_removexattr, __NR_lremovexattr, __NR_fremovexattr,
};

static const uint32_t own_process = 0;
static const uint32_t namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                                   CLONE_NEWUTS | CLONE_NEWCGROUP;
static const uint32_t denied_ioctls[] = {TIOCSTI, TIOCLINUX, (uint32_t)FS_IOC_SETFLAGS, (uint32_t)FS_IOC_FSSETXATTR,
                                         (uint32_t)FS_IOC_ENABLE_VERITY};
/* A pair of datagram sockets could send to any address. */
static const uint32_t pair_types[] = {SOCK_STREAM,
                                      SOCK_STREAM | SOCK_CLOEXEC,
                                      SOCK_STREAM | SOCK_NONBLOCK,
                                      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                      SOCK_SEQPACKET,
                                      SOCK_SEQPACKET | SOCK_CLOEXEC,
                                      SOCK_SEQPACKET | SOCK_NONBLOCK,
                                      SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK};

static const struct seccomp_argument arguments[] = {
    {__NR_clone, 0, BPF_JSET, &namespaces, 1, DENY, SECCOMP_RET_ALLOW},
    {__NR_ioctl, 1, BPF_JEQ, denied_ioctls, COUNT(denied_ioctls), DENY, SECCOMP_RET_ALLOW},
    {__NR_socketpair, 1, BPF_JEQ, pair_types, COUNT(pair_types), SECCOMP_RET_ALLOW, DENY, .has_other = true,
     .other_number = 0, .other_value = AF_UNIX},
    {__NR_prlimit64, 0, BPF_JEQ, &own_process, 1, SECCOMP_RET_ALLOW, DENY},
    {__NR_sched_setscheduler, 0, BPF_JEQ, &own_process, 1, SECCOMP_RET_ALLOW, DENY},
    {__NR_sched_setparam, 0, BPF_JEQ, &own_process, 1, SECCOMP_RET_ALLOW, DENY},
    {__NR_sched_setattr, 0, BPF_JEQ, &own_process, 1, SECCOMP_RET_ALLOW, DENY},
};

static struct seccomp_filter filter;

void landlock_filter_prepare(void)
{
    struct seccomp_rules rules = {.count = 0};
    container_deny_calls(&rules, false);
    seccomp_add(&rules, refused, COUNT(refused), DENY);
    seccomp_add(&rules, unknown, COUNT(unknown), SECCOMP_RET_ERRNO | ENOSYS);
    seccomp_add(&rules, unsupported, COUNT(unsupported), SECCOMP_RET_ERRNO | EOPNOTSUPP);
    seccomp_add_arguments(&rules, arguments, COUNT(arguments));
    seccomp_notify_rules(&rules);
    seccomp_make(&filter, &rules);
}

int landlock_container_guard(int tell, struct fail *fail)
{
    int code = landlock_seclude(fail);
    AUTO_CLOSE int listener = code < 0 ? -1 : seccomp_apply(&filter, SECCOMP_FILTER_FLAG_NEW_LISTENER, fail);
    if (listener < 0)
        return fail->code;
    return wire_send(tell, &(struct wire_head){0}, (struct slice){0}, &listener, 1);
}
