#include "workers/sandbox/container/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/container/seccomp/seccomp_root.h"
#include "workers/sandbox/container/seccomp/seccomp_rules.h"

enum { PROCESSES_SPARE = 8 };

/* ---- limits ------------------------------------------------------------------------- */

static void limit(int what, uint64_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < most)
        most = now.rlim_max;
    setrlimit((__rlimit_resource_t)what, &(struct rlimit){most, most});
}

struct container_limits container_limits(const struct container_plan *plan)
{
    bool is_watched = tier_is_on_disk(plan->tier) && plan->wanted.disk_mib < plan->wanted.file_mib;
    return (struct container_limits){
        .each = {{RLIMIT_CORE, 0},
                 {RLIMIT_NOFILE, CONTAINER_FILES_MAX},
                 /* holes count: data is bounded by the disk too, or watched and better bounded here */
                 {RLIMIT_FSIZE, (is_watched ? plan->wanted.disk_mib : plan->wanted.file_mib) << 20},
                 /* where the sandbox has a user namespace, of it alone (Linux 5.14) */
                 {RLIMIT_SIGPENDING, CONTAINER_SIGNALS_MAX},
                 {RLIMIT_MSGQUEUE, CONTAINER_QUEUES_MAX},
                 {RLIMIT_NPROC, plan->wanted.processes + 1}}, /* pid 1 counts too */
        /* without a namespace of its own, all processes of the user would count */
        .count = tier_has_namespaces(plan->tier) ? 6 : 3,
    };
}

void container_limit(const struct container_plan *plan)
{
    struct container_limits limits = container_limits(plan);
    for (size_t i = 0; i < limits.count; i++)
        limit(limits.each[i].what, limits.each[i].most);
}

int container_offer_to_killer(struct fail *fail)
{
    AUTO_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, "1000", 4) < 0 ? fail_set(fail, -errno, "oom_score_adj: %s", strerror(errno)) : 0;
}

/* ---- rights ------------------------------------------------------------------------- */

int container_set_rights(uint32_t kept, struct fail *fail)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2] = {0};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    rights[0].effective = rights[0].permitted = kept;
    if (syscall(SYS_capset, &header, rights) < 0)
        return fail_set(fail, -errno, "capset: %s", strerror(errno));
    return 0;
}

int container_drop_bounds(struct fail *fail)
{
    int right = 0;
    while (prctl(PR_CAPBSET_DROP, right, 0, 0, 0) == 0)
        right++;
    if (errno != EINVAL || right <= CAP_SYS_ADMIN) /* EINVAL: the kernel has no more */
        return fail_set(fail, -errno, "bounding set: %s", strerror(errno));
    return 0;
}

int container_drop_rights(uint32_t kept, struct fail *fail)
{
    int code = container_drop_bounds(fail);
    return code < 0 ? code : container_set_rights(kept, fail);
}

int container_confine(const struct container_plan *plan, struct fail *fail)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NPROC, plan->wanted.processes + 1 + PROCESSES_SPARE); /* pid 1 can always start one */
    /* It keeps what lets it read files whose owner took the permission away; what it executes has none. */
    int code = container_set_rights(1u << CAP_DAC_OVERRIDE, fail);
    if (code == 0)
        code = container_apply_filter(fail);
    if (code == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        code = fail_set(fail, -errno, "dumpable: %s", strerror(errno));
    return code;
}

int container_confine_process(const struct container_plan *plan, struct fail *fail)
{
    return plan->wanted.uid == 0 ? seccomp_root_apply(fail) : 0;
}

int container_confine_server(struct fail *fail)
{
    limit(RLIMIT_CORE, 0);
    container_prepare_server_filter();
    int code = container_drop_rights(0, fail);
    return code < 0 ? code : container_apply_filter(fail);
}
