/* What a sandbox gives up before anything untrusted runs in it: limits, rights, system calls. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workers/sandbox/room.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call filter knows x86_64 and aarch64"
#endif

/* Calls from FIRST_UNKNOWN on are answered as by the kernel before them, so that no new one is a new
 * way out; those of x32 are far above. */
enum { PROCESSES_SPARE = 8, FIRST_UNKNOWN = 463 };

/* ---- limits ------------------------------------------------------------------------- */

static void limit(int what, uint64_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < most)
        most = now.rlim_max;
    setrlimit((__rlimit_resource_t)what, &(struct rlimit){most, most});
}

struct room_limits room_limits(const struct room_plan *plan)
{
    bool is_watched = plan->tier == TIER_overlay_disk && plan->disk_mib < plan->file_mib;
    return (struct room_limits){
        .each = {{RLIMIT_CORE, 0},
                 {RLIMIT_NPROC, plan->processes + 1}, /* pid 1 counts too */
                 {RLIMIT_NOFILE, ROOM_FILES_MAX},
                 /* holes count: data is bounded by the disk too, or watched and better bounded here */
                 {RLIMIT_FSIZE, (is_watched ? plan->disk_mib : plan->file_mib) << 20}},
        .count = 4,
    };
}

void room_limit(const struct room_plan *plan)
{
    struct room_limits limits = room_limits(plan);
    for (size_t i = 0; i < limits.count; i++)
        limit(limits.each[i].what, limits.each[i].most);
}

int room_bind_cpus(const struct room_plan *plan, struct fail *fail)
{
    if (CPU_COUNT(&plan->cpus) > 0 && sched_setaffinity(0, sizeof(plan->cpus), &plan->cpus) < 0)
        return fail_set(fail, -errno, "CPUs: %s", strerror(errno));
    return 0;
}

/* ---- system calls ------------------------------------------------------------------- */

/* Refused with EPERM: namespaces, mounts, the kernel's inner life, leaving one's CPUs. */
static const uint32_t denied_calls[] = {
    __NR_mount,          __NR_umount2,          __NR_pivot_root,
    __NR_unshare,        __NR_setns,            __NR_chroot,
    __NR_open_tree,      __NR_move_mount,       __NR_fsopen,
    __NR_fsconfig,       __NR_fsmount,          __NR_fspick,
    __NR_mount_setattr,  __NR_bpf,              __NR_perf_event_open,
    __NR_keyctl,         __NR_add_key,          __NR_request_key,
    __NR_userfaultfd,    __NR_io_uring_setup,   __NR_io_uring_enter,
    __NR_init_module,    __NR_finit_module,     __NR_io_uring_register,
    __NR_delete_module,  __NR_kexec_load,       __NR_reboot,
    __NR_swapon,         __NR_swapoff,          __NR_quotactl,
    __NR_acct,           __NR_open_by_handle_at, __NR_name_to_handle_at,
    __NR_fanotify_init,  __NR_sched_setaffinity, __NR_syslog,
#ifdef __NR_quotactl_fd
    __NR_quotactl_fd,
#endif
};

/* Answered as by a kernel without them. clone3 hides its flags from filters (libc falls back
 * to clone); memory of the others is in no process's account: 32,000 message queues hold 32 GiB. */
static const uint32_t unknown_calls[] = {
    __NR_clone3,
    __NR_memfd_create,
    __NR_msgget,
    __NR_msgsnd,
#ifdef __NR_memfd_secret
    __NR_memfd_secret,
#endif
};

static const uint32_t socket_families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
static const uint32_t denied_ioctls[] = {TIOCSTI, TIOCLINUX};

static const uint32_t new_namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                       CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/* Of one set; the kernel's own limit is 32,000, in each of as many sets. */
static const uint32_t semaphores_max = 64;

/* pid 1 has the same user: its limits and its share of the CPUs are not for those inside. */
static const uint32_t own_process = 0, first_process = 1;

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NOT_OF_FIRST(call, number)                                                                 \
    {call, number, BPF_JEQ, &first_process, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW}

/* What one call's argument decides: `found` where it is one of the table (for BPF_JSET: shares a
 * bit with it; for BPF_JGT: is above it), `otherwise` where not. */
struct argument_rule {
    uint32_t call, number;
    uint16_t test;
    const uint32_t *table;
    size_t count;
    uint32_t found, otherwise;
};

static const struct argument_rule argument_rules[] = {
    {__NR_clone, 0, BPF_JSET, &new_namespaces, 1, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW},
    {__NR_ioctl, 1, BPF_JEQ, denied_ioctls, COUNT(denied_ioctls), SECCOMP_RET_ERRNO | EPERM,
     SECCOMP_RET_ALLOW},
    {__NR_socket, 0, BPF_JEQ, socket_families, COUNT(socket_families), SECCOMP_RET_ALLOW,
     SECCOMP_RET_ERRNO | EAFNOSUPPORT},
    {__NR_semget, 1, BPF_JGT, &semaphores_max, 1, SECCOMP_RET_ERRNO | EINVAL, SECCOMP_RET_ALLOW},
    {__NR_prlimit64, 0, BPF_JEQ, &own_process, 1, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM},
    NOT_OF_FIRST(__NR_setpriority, 1),
    NOT_OF_FIRST(__NR_sched_setscheduler, 0),
    NOT_OF_FIRST(__NR_sched_setparam, 0),
    NOT_OF_FIRST(__NR_sched_setattr, 0),
};

struct rule {
    uint32_t call, action;
    const struct argument_rule *argument; /* or NULL: the action */
};

enum {
    RULES = COUNT(denied_calls) + COUNT(unknown_calls) + COUNT(argument_rules),
    /* an end of the search has at most 3 instructions, and so many less one branches lead there */
    FILTER_MAX = 8 + 4 * RULES + 3 * COUNT(argument_rules) +
                 2 * (COUNT(argument_rules) + COUNT(denied_ioctls) + COUNT(socket_families)),
};

/* Made once, for all rooms: room_prepare_filter. */
static struct {
    struct sock_filter code[FILTER_MAX];
    unsigned short len;
} filter;

static void put(uint16_t code, uint32_t value, uint8_t yes, uint8_t no)
{
    filter.code[filter.len++] = (struct sock_filter){code, yes, no, value};
}

static void put_load(size_t offset) { put(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }
static void put_return(uint32_t action) { put(BPF_RET | BPF_K, action, 0, 0); }

/* If what was loaded compares as `test` with value, the program ends here. */
static void put_verdict(uint16_t test, uint32_t value, uint32_t action)
{
    put(BPF_JMP | test | BPF_K, value, 0, 1);
    put_return(action);
}

static void put_argument(const struct argument_rule *rule)
{
    put(BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0, (uint8_t)(2 + 2 * rule->count));
    put_load(offsetof(struct seccomp_data, args) + rule->number * sizeof(uint64_t));
    for (size_t i = 0; i < rule->count; i++)
        put_verdict(rule->test, rule->table[i], rule->found);
    put_return(rule->otherwise);
}

/*
 * A search by halves: the kernel runs the program for each of its calls when it is set, to learn
 * which are always allowed, and that is most of what setting it costs.
 */
static void put_search(const struct rule *rules, size_t count)
{
    if (count > 1) {
        unsigned short branch = filter.len;
        put(BPF_JMP | BPF_JGE | BPF_K, rules[count / 2].call, 0, 0);
        put_search(rules, count / 2);
        filter.code[branch].jt = (uint8_t)(filter.len - branch - 1);
        put_search(rules + count / 2, count - count / 2);
        return;
    }
    if (rules->argument)
        put_argument(rules->argument);
    else
        put_verdict(BPF_JEQ, rules->call, rules->action);
    put_return(SECCOMP_RET_ALLOW);
}

static int compare_rules(const void *a, const void *b)
{
    const struct rule *x = a, *y = b;
    return (x->call > y->call) - (x->call < y->call);
}

/* What a fork server of kernels needs all the same. */
static bool is_of_servers(uint32_t call)
{
    return call == __NR_setns || call == __NR_sched_setaffinity;
}

static size_t add_rules(struct rule *rules, size_t count, const uint32_t *calls, size_t more, int error)
{
    for (size_t i = 0; i < more; i++)
        rules[count++] = (struct rule){calls[i], SECCOMP_RET_ERRNO | (uint32_t)error, NULL};
    return count;
}

_Static_assert(FILTER_MAX < 2 * UINT8_MAX, "a branch reaches the middle of the program");

static void make_filter(bool is_server)
{
    struct rule rules[RULES];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(denied_calls); i++)
        if (!is_server || !is_of_servers(denied_calls[i]))
            count = add_rules(rules, count, &denied_calls[i], 1, EPERM);
    count = add_rules(rules, count, unknown_calls, COUNT(unknown_calls), ENOSYS);
    for (size_t i = 0; i < COUNT(argument_rules); i++)
        rules[count++] = (struct rule){argument_rules[i].call, 0, &argument_rules[i]};
    qsort(rules, count, sizeof(*rules), compare_rules);
    filter.len = 0;
    put_load(offsetof(struct seccomp_data, arch));
    put(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    put_return(SECCOMP_RET_KILL_PROCESS);
    put_load(offsetof(struct seccomp_data, nr));
    put_verdict(BPF_JGE, FIRST_UNKNOWN, SECCOMP_RET_ERRNO | ENOSYS);
    put_search(rules, count);
}

void room_prepare_filter(void) { make_filter(false); }

struct slice room_filter(void)
{
    return slice_of((const uint8_t *)filter.code, filter.len * sizeof(*filter.code));
}

static int filter_calls(struct fail *fail)
{
    struct sock_fprog program = {filter.len, filter.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail_set(fail, -errno, "no_new_privs: %s", strerror(errno));
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return fail_set(fail, -errno, "seccomp: %s", strerror(errno));
    return 0;
}

/* ---- rights ------------------------------------------------------------------------- */

/* pid 1 keeps the one that lets it read files whose owner took the permission away; what it
 * executes has none. */
static int drop_rights(uint32_t kept, struct fail *fail)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2] = {0};
    int right = 0;
    while (prctl(PR_CAPBSET_DROP, right, 0, 0, 0) == 0)
        right++;
    if (errno != EINVAL || right <= CAP_SYS_ADMIN) /* EINVAL: the kernel has no more */
        return fail_set(fail, -errno, "bounding set: %s", strerror(errno));
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    rights[0].effective = rights[0].permitted = kept;
    if (syscall(SYS_capset, &header, rights) < 0)
        return fail_set(fail, -errno, "capset: %s", strerror(errno));
    return 0;
}

int room_confine(const struct room_plan *plan, struct fail *fail)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NPROC, plan->processes + 1 + PROCESSES_SPARE); /* pid 1 can always start one */
    int code = drop_rights(1u << CAP_DAC_OVERRIDE, fail);
    if (code == 0)
        code = filter_calls(fail);
    if (code == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        code = fail_set(fail, -errno, "dumpable: %s", strerror(errno));
    return code;
}

int room_confine_server(struct fail *fail)
{
    limit(RLIMIT_CORE, 0);
    make_filter(true); /* of this process alone */
    int code = drop_rights(0, fail);
    return code < 0 ? code : filter_calls(fail);
}
