/* fuse-overlayfs on a mount of ours: the program gets the mount's descriptor and one right. */
#include "workers/sandbox/backends/fuse/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/sandbox/container/host_image.h"

enum { DEVICE = 3 };

/* Lower directories by descriptor: no path is too long or needs escaping. */
static void add_lower(struct buffer *options, const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY); /* kept for the program */
    if (fd < 0)
        _exit(1);
    buffer_printf(options, "%s/proc/self/fd/%d", options->len ? ":" : "lowerdir=", fd);
}

/* What lies in the base mounts. */
static void add_base_mounts(struct buffer *options, const char *scratch, const char *name)
{
    char path[PLAN_DISK_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    add_lower(options, path);
}

static char *list_options(const struct container_plan *plan, const char *scratch)
{
    struct buffer options = {0};
    if (host_image_is(plan->image))
        add_base_mounts(&options, scratch, "top");
    for (size_t i = plan->layer_count; i-- > 0;)
        add_lower(&options, plan->layers[i]);
    if (!host_image_is(plan->image))
        add_lower(&options, plan->image);
    if (plan->harness_dir)
        add_base_mounts(&options, scratch, "harness_skeleton");
    add_base_mounts(&options, scratch, "skeleton");
    buffer_append_str(&options, ",upperdir=upper,workdir=work");
    return buffer_take_str(&options);
}

/* Files whose owner took the permission away are written by who has the right in the sandbox; the
 * kernel asks before it asks the program, whose own right reaches this user's files only. */
static void keep_one_right(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2] = {0};
    rights[0].effective = rights[0].permitted = rights[0].inheritable = 1u << CAP_DAC_OVERRIDE;
    if (syscall(SYS_capset, &header, rights) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) < 0)
        _exit(1);
}

/* In the child: from the directory that holds upper and work, whose path needs no escaping so. */
static _Noreturn void serve(const struct container_plan *plan, const char *scratch, int device)
{
    static char name[] = "fuse-overlayfs", foreground[] = "-f", option[] = "-o", target[] = "/dev/fd/3";
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR);
    if (chdir(plan->disk) < 0 || dup2(device, DEVICE) < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(1);
    close_range(DEVICE + 1, ~0U, 0);
    char *options = list_options(plan, scratch);
    keep_one_right();
    char *argv[] = {name, foreground, option, options, target, NULL};
    if (options)
        execvp(name, argv);
    _exit(1);
}

int fuse_mount(struct container_plan *plan, const char *scratch, struct fail *fail)
{
    char options[128], merged[PLAN_DISK_PATH_MAX + 16];
    AUTO_CLOSE int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        return fail_set(fail, -errno, "/dev/fuse: %s", strerror(errno));
    snprintf(merged, sizeof(merged), "%s/merged", plan->disk);
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d,default_permissions,allow_other",
             device, CONTAINER_UID, CONTAINER_UID);
    if (mount("fuse-overlayfs", merged, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
        return fail_set(fail, -errno, "mounting with FUSE: %s", strerror(errno));
    plan->server = fork();
    if (plan->server == 0)
        serve(plan, scratch, device);
    return plan->server < 0 ? fail_set(fail, -errno, "fork: %s", strerror(errno)) : 0;
}
