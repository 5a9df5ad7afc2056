#include "workers/sandbox/spawner/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/cleanup.h"
#include "workers/files/locked_dir.h"
#include "workers/sandbox/backends/fuse/fuse.h"
#include "workers/sandbox/container/container.h"
#include "workers/sandbox/spawner/disk_quota.h"

enum { HOLD_TRIES = 8 };

static int refuse(struct fail *fail, const char *what)
{
    return fail_set(fail, -errno, "%s: %s", what, strerror(errno));
}

/* ---- opening ------------------------------------------------------------------------- */

/* Who sweeps may have taken it between its making and our lock. */
static int hold_own(struct disks *disks, const char *parent, struct fail *fail)
{
    if (mkdir(parent, 0700) < 0 && errno != EEXIST)
        return refuse(fail, parent);
    for (int i = 0; i < HOLD_TRIES; i++) {
        AUTO_FREE char *path = locked_dir_make(parent, "disks", fail);
        if (!path)
            return fail->code;
        if (snprintf(disks->path, sizeof(disks->path), "%s", path) >= PLAN_DISK_PATH_MAX)
            return fail_set(fail, -ENAMETOOLONG, "%s: too long", path);
        disks->lock = locked_dir_hold(path);
        if (disks->lock >= 0)
            return 0;
    }
    return fail_set(fail, -EBUSY, "%s: cannot hold a directory there", parent);
}

static int start_quota(struct disks *disks, const char *parent, int births, struct fail *fail)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return refuse(fail, "socketpair");
    disks->quota_pid = fork();
    if (disks->quota_pid == 0) {
        prctl(PR_SET_NAME, "sluice-quota");
        close(ends[0]);
        quota_run(disks->path, parent, ends[1], births);
    }
    close(ends[1]);
    disks->quota = ends[0];
    return disks->quota_pid < 0 ? refuse(fail, "fork") : 0;
}

int disks_open(struct disks *disks, enum tier tier, const char *scratch, const char *parent, int births,
               struct fail *fail)
{
    *disks = (struct disks){.tier = tier, .lock = -1, .quota = -1};
    if (tier == TIER_fuse_overlayfs)
        snprintf(disks->path, sizeof(disks->path), "%s/disks", scratch);
    if (!tier_is_on_disk(tier))
        return 0;
    int code = hold_own(disks, parent, fail);
    return code == 0 ? start_quota(disks, parent, births, fail) : code;
}

/* ---- orders -------------------------------------------------------------------------- */

bool disks_is_waiting(const struct disks *disks) { return disks->waiting_count > 0; }

void disks_send(struct disks *disks)
{
    size_t sent = 0;
    while (sent < disks->waiting_count) {
        const struct quota_order *order = &disks->waiting[sent];
        ssize_t size = send(disks->quota, order, sizeof(*order), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size < 0 && errno != EINTR) /* no room; or no quota daemon, and then the spawner ends */
            break;
        sent += size >= 0;
    }
    disks->waiting_count -= sent;
    memmove(disks->waiting, disks->waiting + sent, disks->waiting_count * sizeof(*disks->waiting));
}

/* Of one more container: for its beginning now, and for its end and those of all others whenever they come. */
static int reserve_orders(struct disks *disks, struct fail *fail)
{
    size_t needed = disks->waiting_count + disks->containers + 2;
    if (disks->waiting_count >= DISKS_WAITING_MAX)
        return fail_set(fail, -EBUSY, "the quota daemon of disks has %zu orders to take first", disks->waiting_count);
    if (needed <= disks->waiting_capacity)
        return 0;
    struct quota_order *more = reallocarray(disks->waiting, needed, 2 * sizeof(*more));
    if (!more)
        return fail_memory(fail);
    disks->waiting = more;
    disks->waiting_capacity = 2 * needed;
    return 0;
}

static void order(struct disks *disks, const struct quota_order *order)
{
    disks->waiting[disks->waiting_count++] = *order;
    disks_send(disks);
}

/* ---- one container's ---------------------------------------------------------------------- */

static int make_dirs(const char *path, struct fail *fail)
{
    static const char *const names[] = {"upper", "work", "merged"};
    AUTO_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (mkdirat(dir, names[i], 0700) < 0 || fchmodat(dir, names[i], 0755, 0) < 0)
            return refuse(fail, path);
    return 0;
}

static int make_on_tmpfs(struct container_plan *plan, const char *path, struct fail *fail)
{
    char options[96];
    snprintf(options, sizeof(options), "mode=0755,size=%lum,nr_inodes=%lu", (unsigned long)plan->wanted.disk_mib,
             (unsigned long)container_disk_inodes(plan));
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return refuse(fail, "tmpfs");
    int code = make_dirs(path, fail);
    return code == 0 ? fuse_mount(plan, plan->scratch, fail) : code;
}

int disks_make(struct disks *disks, struct container_plan *plan, char path[PLAN_DISK_PATH_MAX], struct fail *fail)
{
    if (!disks->path[0])
        return 0;
    if (!plan_disk_path(disks->path, plan->id, path))
        return fail_set(fail, -ENAMETOOLONG, "%s: too long", disks->path);
    if (disks->quota >= 0 && reserve_orders(disks, fail) < 0)
        return fail->code;
    if (mkdir(path, 0700) < 0)
        return refuse(fail, path);
    disks->containers++;
    plan->disk = path;
    int code = disks->tier == TIER_fuse_overlayfs ? make_on_tmpfs(plan, path, fail) : make_dirs(path, fail);
    if (code < 0)
        disks_remove(disks, plan->id);
    else if (disks->quota >= 0)
        order(disks, &(struct quota_order){.id = plan->id,
                                           .is_whole = !tier_has_namespaces(disks->tier),
                                           .bytes = plan->wanted.disk_mib << 20,
                                           .inodes = container_disk_inodes(plan),
                                           .usage = plan->usage});
    return code;
}

/* The mount of FUSE ends with the last look at it, and its process then. */
void disks_remove(struct disks *disks, uint32_t id)
{
    char path[PLAN_DISK_PATH_MAX + 16], merged[PLAN_DISK_PATH_MAX + 32];
    if (!disks->path[0])
        return;
    disks->containers--;
    if (disks->quota >= 0)
        order(disks, &(struct quota_order){.id = id, .is_end = true});
    if (disks->tier != TIER_fuse_overlayfs)
        return;
    snprintf(path, sizeof(path), "%s/%u", disks->path, id);
    snprintf(merged, sizeof(merged), "%s/merged", path);
    umount2(merged, MNT_DETACH);
    umount2(path, MNT_DETACH);
    rmdir(path);
}

void disks_close(struct disks *disks)
{
    if (disks->quota < 0)
        return;
    close(disks->quota);
    disks->quota = -1;
    free(take_ptr(&disks->waiting));
    disks->waiting_count = disks->waiting_capacity = 0;
    while (waitpid(disks->quota_pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
