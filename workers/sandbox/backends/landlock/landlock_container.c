#include "workers/sandbox/backends/landlock/landlock_container.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/backends/landlock/landlock_layers.h"
#include "workers/sandbox/container/confine.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/high_fds.h"
#include "workers/sandbox/container/landlock.h"
#include "workers/sandbox/container/mounts.h"
#include "workers/sandbox/proto/wire.h"

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

pid_t landlock_container_fork(int keeps, int cgroup, int *ret_pidfd)
{
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)ret_pidfd, .exit_signal = SIGCHLD};
    return high_fds_clone(&args, keeps, cgroup);
}

/* ---- what there is none of ---------------------------------------------------------- */

/* -ENOTSUP: another worker may have it. */
static int check_plan(const struct container_plan *plan, struct fail *fail)
{
    static const char cure[] = "workers with user namespaces do (sluice doctor)";
    if (!host_image_is(plan->image))
        return fail_set(fail, -ENOTSUP, "sandboxes of the tier landlock have no images but \"host\"; %s", cure);
    if (plan->wanted.uid != CONTAINER_UID || plan->wanted.gid != CONTAINER_UID)
        return fail_set(fail, -ENOTSUP,
                        "sandboxes of the tier landlock run as the worker's own user, not as uid %lu; %s",
                        (unsigned long)plan->wanted.uid, cure);
    if (plan->harness_dir)
        return fail_set(fail, -ENOTSUP, "sandboxes of the tier landlock mount nothing, so not the harness %s; %s",
                        plan->harness_name, cure);
    if (plan->wanted.listener_count > 0)
        return fail_set(fail, -ENOTSUP, "sandboxes of the tier landlock have no network, so not \"%s\"; %s",
                        plan->wanted.listeners[0].name, cure);
    return 0;
}

/* ---- its directories ---------------------------------------------------------------- */

static int open_dir(int at, const char *name, int *ret, struct fail *fail)
{
    *ret = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret < 0 ? refuse(fail, name) : 0;
}

static int fill_upper(const struct container_plan *plan, int upper, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; i < plan->layer_count && code == 0; i++)
        code = landlock_layers_copy(plan->layers[i], upper, plan->tier, plan->usage, fail);
    if (code == 0)
        code = landlock_layers_need_dir(upper, "workspace", fail);
    return code == 0 ? landlock_layers_need_dir(upper, "tmp", fail) : code;
}

static int make_dirs(const struct container_plan *plan, struct container *container, struct fail *fail)
{
    AUTO_CLOSE int disk = open(plan->disk, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (disk < 0)
        return refuse(fail, plan->disk);
    int code = open_dir(disk, "upper", &container->upper, fail);
    if (code == 0)
        code = fill_upper(plan, container->upper, fail);
    if (code == 0 && mkdirat(disk, "run", 0700) < 0)
        code = refuse(fail, "run");
    if (code == 0)
        code = open_dir(disk, "run", &container->commands, fail);
    if (code == 0 && mkdirat(container->commands, "out", 0700) < 0)
        code = refuse(fail, "out");
    return code == 0 ? open_dir(container->commands, "out", &container->outputs, fail) : code;
}

/* ---- names, as those inside and the kernel have them -------------------------------- */

static struct { /* one container in a process */
    char upper[CONTAINER_PATH_SIZE], run[CONTAINER_PATH_SIZE], out[CONTAINER_PATH_SIZE], workspace[CONTAINER_PATH_SIZE];
    char settings[CONTAINER_SETTINGS_MAX][CONTAINER_PATH_SIZE + 32];
} places;

static int read_name(int fd, const char *after, char ret[CONTAINER_PATH_SIZE], struct fail *fail)
{
    int code = container_name_of(fd, ret, CONTAINER_PATH_SIZE - 16);
    if (code < 0)
        return fail_set(fail, code, "the cache's path: %s", strerror(-code));
    strcat(ret, after);
    return 0;
}

static void set_settings(struct container *container)
{
    const size_t size = sizeof(places.settings[0]);
    snprintf(places.workspace, sizeof(places.workspace), "%.*sworkspace", CONTAINER_PATH_SIZE - 16, places.upper);
    snprintf(places.settings[0], size, "HOME=%s", places.workspace);
    snprintf(places.settings[1], size, "SLUICE_WORKSPACE=%s", places.workspace);
    snprintf(places.settings[2], size, "TMPDIR=%stmp", places.upper);
    container->workspace = places.workspace;
    for (; container->setting_count < CONTAINER_SETTINGS_MAX; container->setting_count++)
        container->settings[container->setting_count] = places.settings[container->setting_count];
}

static int learn_names(struct container *container, struct fail *fail)
{
    int code = read_name(container->upper, "/", places.upper, fail);
    if (code == 0)
        code = read_name(container->commands, "", places.run, fail);
    if (code == 0)
        code = read_name(container->outputs, "/", places.out, fail);
    if (code < 0)
        return code;
    set_settings(container);
    container->seccomp_notify.places[0] = places.upper;
    container->seccomp_notify.places[1] = places.out;
    return 0;
}

/* ---- ruleset ------------------------------------------------------------------------ */

static int allow_devices(int rules, struct fail *fail)
{
    static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                          "/dev/random", "/dev/urandom", "/dev/tty"};
    int code = 0;
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices) && code == 0; i++) {
        code = landlock_allow(rules, devices[i], LANDLOCK_DEVICE, fail);
        code = code == -ENOENT ? 0 : code;
    }
    return code;
}

/* Only what is below these two: that the worker can open them is not for those inside to change. */
static int allow_own(int rules, struct fail *fail)
{
    char path[CONTAINER_PATH_SIZE + 16];
    static const char *const names[] = {"workspace", "tmp"};
    int code = landlock_allow(rules, places.run, LANDLOCK_READ, fail);
    if (code == 0)
        code = landlock_allow(rules, places.out, LANDLOCK_WRITE, fail);
    if (code == 0) /* to pack it */
        code = landlock_allow(rules, places.upper, LANDLOCK_LIST, fail);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && code == 0; i++) {
        snprintf(path, sizeof(path), "%s%s", places.upper, names[i]);
        code = landlock_allow(rules, path, LANDLOCK_WRITE, fail);
    }
    return code;
}

static int apply_rulesets(struct fail *fail)
{
    AUTO_CLOSE int rules = landlock_begin(fail);
    int code = rules < 0 ? rules : host_image_allow(rules, fail);
    if (code == 0)
        code = landlock_allow(rules, "/proc", LANDLOCK_READ, fail);
    if (code == 0)
        code = allow_devices(rules, fail);
    if (code == 0)
        code = allow_own(rules, fail);
    return code == 0 ? landlock_apply(rules, fail) : code;
}

/* ---- in order ----------------------------------------------------------------------- */

int landlock_container_build(const struct container_plan *plan, struct container *ret, struct fail *fail)
{
    int code = check_plan(plan, fail);
    *ret = (struct container){.upper = -1, .disk = -1, .commands = -1, .outputs = -1, .proc = -1};
    if (code < 0)
        return code;
    umask(0);
    code = make_dirs(plan, ret, fail);
    umask(022);
    if (code == 0)
        code = learn_names(ret, fail);
    if (code == 0)
        code = open_dir(AT_FDCWD, "/proc", &ret->proc, fail);
    if (code == 0 && (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || setsid() < 0 || chdir("/") < 0))
        code = refuse(fail, "a reaper");
    return code;
}

int landlock_container_confine(const struct container_plan *plan, struct fail *fail)
{
    (void)plan;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int code = container_offer_to_killer(fail);
    if (code == 0)
        code = geteuid() == 0 ? container_drop_rights(0, fail) : container_set_rights(0, fail);
    if (code == 0)
        code = apply_rulesets(fail);
    if (code == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        code = refuse(fail, "dumpable");
    return code;
}

int landlock_container_meet(struct container *container, int told, struct fail *fail)
{
    static struct wire_message message;
    int got = wire_receive(told, &message);
    if (got > 0 && message.fd_count == 1)
        return seccomp_notify_add(&container->seccomp_notify, take_fd(&message.fds[0]))
                   ? 0
                   : fail_set(fail, -EAGAIN, "%d processes and their children run", NOTIFIERS_MAX);
    wire_close_fds(&message);
    return fail_set(fail, -EIO, "a process could not be put under a ruleset");
}
