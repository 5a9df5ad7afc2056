/* System calls that reach for the kernel, for other namespaces, for rights. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/quota.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/workers/attacks/inside/attack.h"

enum { OPEN_TREE_ATTR = 467 }; /* newer than libc's headers */

static void try_namespaces(void)
{
    static const struct {
        const char *name;
        int flag;
    } kinds[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},  {"pid", CLONE_NEWPID},      {"net", CLONE_NEWNET},
                 {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}};
    char name[64];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        snprintf(name, sizeof(name), "unshare-%s", kinds[i].name);
        TRY(name, unshare(kinds[i].flag));
        snprintf(name, sizeof(name), "clone-%s", kinds[i].name);
        TRY(name, syscall(SYS_clone, kinds[i].flag | SIGCHLD, 0, 0, 0, 0));
    }
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    TRY("clone3", syscall(SYS_clone3, &args, sizeof(args)));
    int own = open("/proc/self/ns/mnt", O_RDONLY);
    TRY("setns-own", setns(own, 0));
    int first = (int)syscall(SYS_pidfd_open, 1, 0);
    TRY("setns-pid-1", setns(first, CLONE_NEWNS));
}

static void try_mounts(void)
{
    TRY("mount-tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
    TRY("mount-bind", mount("/etc", "/tmp", NULL, MS_BIND, NULL));
    TRY("mount-remount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("umount-proc", umount2("/proc", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
    TRY("chroot", chroot("/tmp"));
    TRY("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    TRY("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    TRY("fsconfig", syscall(SYS_fsconfig, 0, 0, "size", "1m", 0));
    TRY("fsmount", syscall(SYS_fsmount, 0, 0, 0));
    TRY("fspick", syscall(SYS_fspick, AT_FDCWD, "/usr", 0));
    TRY("open_tree_attr", syscall(OPEN_TREE_ATTR, AT_FDCWD, "/", 0, NULL, 0));
    TRY("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/usr", AT_FDCWD, "/tmp", 0));
    TRY("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, NULL, 0));
    TRY("mknod-disk", mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)));
    TRY("mknod-mem", mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
}

/* Memory of the kernel's, which no process shows. */
static void try_queues(void)
{
    static struct {
        long type;
        char text[8];
    } message = {.type = 1};
    TRY("msgget", msgget(IPC_PRIVATE, 0600 | IPC_CREAT));
    TRY("msgget-named", msgget(0x51, 0600 | IPC_CREAT));
    TRY("msgsnd", msgsnd(0, &message, sizeof(message.text), IPC_NOWAIT));
    TRY("semget-64", semget(IPC_PRIVATE, 64, 0600 | IPC_CREAT));
    TRY("semget-65", semget(IPC_PRIVATE, 65, 0600 | IPC_CREAT));
    TRY("semget-32000", semget(IPC_PRIVATE, 32000, 0600 | IPC_CREAT));
    TRY("semget--1", semget(IPC_PRIVATE, -1, 0600 | IPC_CREAT));
}

static void try_kernel(void)
{
    static char memory[256];
    TRY("bpf", syscall(SYS_bpf, 0, memory, sizeof(memory)));
    TRY("perf_event_open", syscall(SYS_perf_event_open, memory, 0, -1, -1, 0));
    TRY("io_uring_setup", syscall(SYS_io_uring_setup, 8, memory));
    TRY("io_uring_enter", syscall(SYS_io_uring_enter, 3, 1, 0, 0, NULL, 0));
    TRY("io_uring_register", syscall(SYS_io_uring_register, 3, 0, NULL, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
    TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1));
    TRY("add_key", syscall(SYS_add_key, "user", "k", "v", 1, -3));
    TRY("request_key", syscall(SYS_request_key, "user", "k", NULL, 0));
    TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
    TRY("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0));
    TRY("init_module", syscall(SYS_init_module, memory, sizeof(memory), ""));
    TRY("finit_module", syscall(SYS_finit_module, 0, "", 0));
    TRY("delete_module", syscall(SYS_delete_module, "ext4", 0));
    TRY("reboot", reboot(RB_AUTOBOOT));
    TRY("swapon", swapon("/tmp", 0));
    TRY("swapoff", swapoff("/tmp"));
    TRY("acct", acct("/tmp/acct"));
    TRY("quotactl", quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
    TRY("syslog", syscall(SYS_syslog, 3, memory, sizeof(memory)));
    TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, 0, memory, 0));
    TRY("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", memory, memory, 0));
    TRY("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
    TRY("memfd_create", syscall(SYS_memfd_create, "m", 0));
    TRY("memfd_secret", syscall(SYS_memfd_secret, 0));
    try_queues();
    TRY("settimeofday", settimeofday(&(struct timeval){1, 0}, NULL));
    TRY("sethostname", sethostname("x", 1));
#ifdef __x86_64__
    TRY("iopl", syscall(SYS_iopl, 3));
    TRY("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
    TRY("x32-getpid", syscall(0x40000000 | SYS_getpid));
#endif
}

static void try_processes(void)
{
    static char memory[64];
    struct iovec here = {memory, sizeof(memory)}, there = {(void *)try_processes, sizeof(memory)};
    int first = (int)syscall(SYS_pidfd_open, 1, 0);
    TRY("ptrace-pid-1", ptrace(PTRACE_ATTACH, 1, NULL, NULL));
    TRY("ptrace-seize-pid-1", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
    TRY("process_vm_readv-pid-1", process_vm_readv(1, &here, 1, &there, 1, 0));
    TRY("process_vm_writev-pid-1", process_vm_writev(1, &here, 1, &there, 1, 0));
    TRY("pidfd_getfd-pid-1", syscall(SYS_pidfd_getfd, first, 3, 0));
    TRY("limit-pid-1", prlimit(1, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL));
    TRY("nice-pid-1", setpriority(PRIO_PROCESS, 1, 19));
    TRY("nice-all", setpriority(PRIO_USER, 0, 19));
    TRY("nice-all-by-number", setpriority(PRIO_USER, 1000, 19));
    TRY("io-pid-1", syscall(SYS_ioprio_set, 1, 1, 3 << 13));
    TRY("io-all", syscall(SYS_ioprio_set, 3, 1000, 3 << 13));
    TRY("io-self", syscall(SYS_ioprio_set, 1, 0, 3 << 13));
    TRY("idle-pid-1", sched_setscheduler(1, SCHED_IDLE, &(struct sched_param){0}));
    TRY("nice-self", setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)));
    TRY("limit-self", prlimit(0, RLIMIT_CPU, &(struct rlimit){100, 100}, NULL));
    for (int number = 1; number < NSIG; number++)
        kill(1, number);
    TRY("signals-to-pid-1", kill(1, 0));
}

static void try_rights(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    TRY("setuid-0", setuid(0));
    TRY("setresuid-1", setresuid(1, 1, 1));
    TRY("setgroups", syscall(SYS_setgroups, 1, &(gid_t){0}));
    TRY("capset", syscall(SYS_capset, &header, all));
    TRY("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
    TRY("no_new_privs-off", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    TRY("seccomp-off", prctl(PR_SET_SECCOMP, 0, 0, 0, 0));
    TRY("chown-0", chown(".", 0, 0));
    TRY("nice", setpriority(PRIO_PROCESS, 0, -10));
    TRY("realtime", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}));
    TRY("sched_setaffinity", sched_setaffinity(0, sizeof(cpus), &cpus));
    TRY("oom_score_adj", ({
            int fd = open("/proc/self/oom_score_adj", O_WRONLY);
            fd < 0 ? -1 : write(fd, "-1000", 5);
        }));
}

static void try_terminals(void)
{
    int master, slave;
    if (openpty(&master, &slave, NULL, NULL, NULL) < 0) {
        say("openpty", -1);
        return;
    }
    TRY("TIOCSTI", ioctl(slave, TIOCSTI, "x"));
    TRY("TIOCLINUX", ioctl(slave, TIOCLINUX, "\6"));
    TRY("open-tty", open("/dev/tty", O_RDWR));
    TRY("open-console", open("/dev/console", O_RDWR));
}

/* A call in the numbers of another architecture ends the one who makes it. */
static void try_other_architecture(void)
{
#ifdef __x86_64__
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        long result;
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("int-0x80 %s\n", WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "done");
#endif
}

void attack_calls(void)
{
    try_namespaces();
    try_mounts();
    try_kernel();
    try_processes();
    try_rights();
    try_terminals();
    try_other_architecture();
}

/* Limits that were set cannot be raised. */
void attack_limits(void)
{
    static const struct {
        const char *name;
        int what;
    } limits[] = {{"NPROC", RLIMIT_NPROC}, {"NOFILE", RLIMIT_NOFILE}, {"FSIZE", RLIMIT_FSIZE}, {"CORE", RLIMIT_CORE}};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit now;
        getrlimit((__rlimit_resource_t)limits[i].what, &now);
        now.rlim_max++;
        TRY(limits[i].name, setrlimit((__rlimit_resource_t)limits[i].what, &now));
    }
    for (long count = 0;; count++)
        if (open("/dev/null", O_RDONLY) < 0) {
            printf("descriptors %ld\n", count);
            TRY("one-more", open("/dev/null", O_RDONLY));
            return;
        }
}
