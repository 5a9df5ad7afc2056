/* The worker's end of the spawner: forks it, hears which of its sandboxes broke a limit, and ends it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/cleanup.h"
#include "workers/sandbox/apart.h"
#include "workers/sandbox/sandbox_inside.h"
#include "workers/sandbox/spawner.h"

enum { SPAWNER_END_MS = 10000 };

struct spawner *spawner_start(const char *scratch, struct fail *fail)
{
    return spawner_start_tier(scratch, TIER_overlay_tmpfs, NULL, fail);
}

struct spawner *spawner_start_tier(const char *scratch, enum tier tier, const char *disks, struct fail *fail)
{
    return spawner_start_bounded(scratch, tier, disks, NULL, fail);
}

struct spawner *spawner_start_bounded(const char *scratch, enum tier tier, const char *disks,
                                      const struct cgroups *cgroups, struct fail *fail)
{
    int sockets[2];
    if (access(scratch, F_OK) < 0) {
        fail_set(fail, -errno, "scratch directory %s: %s", scratch, strerror(errno));
        return NULL;
    }
    if (geteuid() == 0 && host_image_find_secrets(fail) < 0)
        return NULL;
    struct spawner *spawner = calloc(1, sizeof(*spawner));
    AUTO_CLOSE int gauges_fd = -1; /* the spawner's */
    if (spawner)
        spawner->gauges = gauges_create(tier == TIER_apptainer ? &gauges_fd : NULL);
    if (!spawner || !spawner->gauges || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        sandbox_say(fail, spawner ? -errno : -ENOMEM, "cannot start the spawner");
        if (spawner)
            gauges_destroy(&spawner->gauges);
        free(spawner);
        return NULL;
    }
    struct spawner_setup setup = {.scratch = scratch,
                                  .disks = disks,
                                  .tier = tier,
                                  .gauges = spawner->gauges,
                                  .gauges_fd = gauges_fd,
                                  /* inside of a bound fuse-overlayfs stalls; the others' own programs need much */
                                  .cgroups = tier == TIER_overlay_tmpfs || tier == TIER_overlay_disk ? cgroups : NULL,
                                  .is_in_memory = !tier_is_on_disk(tier) || cgroup_is_memory(scratch),
                                  .is_host_root = geteuid() == 0};
    spawner->tier = tier;
    spawner->cgroups = setup.cgroups;
    spawner->is_in_memory = setup.is_in_memory;
    spawner->pid = tier_is_apart(tier) ? apart_fork(&setup.is_apart) : apart_fork_plainly();
    if (spawner->pid == 0) {
        close(sockets[0]);
        spawner_run(sockets[1], &setup);
    }
    close(sockets[1]);
    spawner->socket = sockets[0];
    spawner->channel.socket = -1;
    if (spawner->pid > 0)
        return spawner;
    sandbox_say(fail, -errno, "cannot start the spawner");
    close(sockets[0]);
    gauges_destroy(&spawner->gauges);
    free(spawner);
    return NULL;
}

static void on_spawner_message(void *arg, struct wire_message *message)
{
    struct spawner *spawner = arg;
    if (message->head.verb != WIRE_BREACH)
        return;
    for (struct sandbox *it = spawner->sandboxes; it; it = it->next)
        if (it->id == message->head.id) {
            snprintf(it->breach, sizeof(it->breach), "%.15s", message->text);
            sandbox_stop_using(it);
        }
}

static void on_spawner_lost(void *arg) { (void)arg; } /* its sandboxes die with it, each heard of */

bool spawner_attach(struct spawner *spawner, struct loop *loop)
{
    spawner->channel.heard = on_spawner_message;
    spawner->channel.lost = on_spawner_lost;
    spawner->channel.arg = spawner;
    return channel_open(&spawner->channel, loop, take_fd(&spawner->socket));
}

pid_t spawner_pid(const struct spawner *spawner)
{
    return spawner->pid;
}

size_t spawner_count(const struct spawner *spawner)
{
    size_t count = 0;
    for (const struct sandbox *sandbox = spawner->sandboxes; sandbox; sandbox = sandbox->next)
        count++;
    return count;
}

void spawner_stop(struct spawner **spawner)
{
    struct spawner *it = *spawner;
    if (!it)
        return;
    *spawner = NULL;
    while (it->sandboxes) {
        struct sandbox *sandbox = it->sandboxes;
        sandbox_stop_using(sandbox);
        sandbox_unlist(sandbox);
    }
    channel_close(&it->channel);
    cleanup_close(&it->socket);
    AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, it->pid, 0);
    if (pidfd >= 0 && poll(&(struct pollfd){pidfd, POLLIN, 0}, 1, SPAWNER_END_MS) == 0)
        kill(it->pid, SIGKILL);
    while (waitpid(it->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    cgroups_clear(it->cgroups);
    gauges_destroy(&it->gauges);
    free(it);
}
