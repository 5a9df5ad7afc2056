/*
 * apptainer_main.c - the program that apptainer executes: pid 1 of a container of the tier apptainer. It looks
 * at what it was given, builds what is left to build, confines itself, and is then as in every other container
 * (init.c). Statically linked: nothing of an image is needed or loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/backends/apptainer/apptainer.h"
#include "workers/sandbox/backends/apptainer/apptainer_look.h"
#include "workers/sandbox/container/confine.h"
#include "workers/sandbox/container/seccomp/seccomp_rules.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/init/init.h"
#include "workers/sandbox/init/backend.h"

static struct apptainer_handover told;

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- what we were given ------------------------------------------------------------------- */

static int look_at_mounts(struct fail *fail)
{
    char line[2 * PATH_MAX];
    AUTO_FCLOSE FILE *mounts = fopen("/proc/self/mountinfo", "re");
    int code = mounts ? 0 : refuse(fail, "mountinfo");
    while (code == 0 && fgets(line, sizeof(line), mounts))
        code = apptainer_check_mount(line, told.points, fail);
    return code;
}

static int look_around(int proc, struct fail *fail)
{
    uint64_t inside[APPTAINER_NAMESPACES];
    int code = apptainer_namespaces(proc, inside, fail);
    if (code == 0)
        code = apptainer_check_namespaces(told.outside, inside, fail);
    if (code == 0 && getpid() != 1)
        code = fail_set(fail, -EPROTO, "apptainer made us process %d of the container, not its first", getpid());
    return code == 0 ? look_at_mounts(fail) : code;
}

/* ---- the way ------------------------------------------------------------------------------- */

static int build(const struct container_plan *plan, struct container *ret, struct fail *fail)
{
    *ret = (struct container){.upper = plan->brought[0],
                              .disk = -1,
                              .commands = plan->brought[1],
                              .outputs = plan->brought[2],
                              .workspace = "/workspace"};
    ret->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    umask(022);
    return ret->proc < 0 ? refuse(fail, "/proc") : look_around(ret->proc, fail);
}

/* We have the user and the rights of those inside, who could slow us down with all of theirs. */
static int keep_own_share(struct fail *fail)
{
    static const uint32_t a_process = PRIO_PROCESS, itself = 0;
    enum { IO_OF_A_PROCESS = 1, DENY = SECCOMP_RET_ERRNO | EPERM };
    static const struct seccomp_argument arguments[] = {
        {__NR_setpriority, 0, BPF_JEQ, &a_process, 1, SECCOMP_RET_ALLOW, DENY},
        {__NR_ioprio_set, 1, BPF_JEQ, &itself, 1, SECCOMP_RET_ALLOW, DENY, .has_other = true, .other_number = 0,
         .other_value = IO_OF_A_PROCESS},
    };
    static struct seccomp_filter filter;
    struct seccomp_rules rules = {.count = 0};
    seccomp_add_arguments(&rules, arguments, sizeof(arguments) / sizeof(*arguments));
    seccomp_make(&filter, &rules);
    return seccomp_apply(&filter, 0, fail);
}

/* Processes are the user's of the host, and counted among all of those: they are watched instead. */
static int confine(const struct container_plan *plan, struct fail *fail)
{
    (void)plan;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int code = container_offer_to_killer(fail);
    if (code == 0)
        code = container_set_rights(0, fail);
    if (code == 0)
        code = container_apply_filter(fail);
    if (code == 0)
        code = keep_own_share(fail);
    if (code == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        code = refuse(fail, "dumpable");
    return code;
}

/* In this program there is no other. */
const struct sandbox_backend *sandbox_backend(enum tier tier)
{
    static const struct sandbox_backend backend = {
        .end_signal = SIGKILL, .build = build, .confine = confine, .form = PACK_WHOLE, .has_terminals = true};
    (void)tier;
    return &backend;
}

/* ---- beginning ----------------------------------------------------------------------------- */

static bool read_told(void)
{
    size_t got = 0;
    ssize_t more;
    do {
        more = read(APPTAINER_HANDOVER_FD, (char *)&told + got, sizeof(told) - got);
        got += more > 0 ? (size_t)more : 0;
    } while (more > 0 && got < sizeof(told));
    return got == sizeof(told) && told.size == sizeof(told) && told.container.listener_count <= LISTENERS_MAX;
}

int main(void)
{
    struct usage *usages = read_told() && told.container.usage < USAGE_COUNT ? usages_map(APPTAINER_USAGES_FD, NULL)
                                                                             : NULL;
    if (!usages)
        return 1; /* who runs us by hand */
    struct container_plan plan = {.id = told.id,
                                  .image = "",
                                  .layer_count = told.layer_count,
                                  .wanted = told.container,
                                  .usage = &usages[told.container.usage],
                                  .brought = {CONTAINER_BROUGHT_FD, CONTAINER_BROUGHT_FD + 1, CONTAINER_BROUGHT_FD + 2},
                                  .brought_count = 3,
                                  .tier = TIER_apptainer};
    signal(SIGPIPE, SIG_IGN);
    container_prepare_filter();
    init_main(&plan, CONTAINER_CONTROL_FD, CONTAINER_BIRTHS_FD);
}
