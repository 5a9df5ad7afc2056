/*
 * container.h - one sandbox from within, built by the process that will be its
 * pid 1, just cloned into new namespaces. Everything is opened before it is mounted and every
 * target is resolved inside the new root, so that no symlink of an image leads outside.
 * Nothing is ever mounted in the namespace of the host.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_CONTAINER_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/fail.h"
#include "common/base/slice.h"
#include "workers/sandbox/container/seccomp.h"
#include "workers/sandbox/backends/landlock/seccomp_notify.h"
#include "workers/sandbox/proto/tier.h"
#include "workers/sandbox/proto/wire.h"

enum { CONTAINER_LAYERS_MAX = 64, CONTAINER_UID = 1000, CONTAINER_FILES_MAX = 4096, CONTAINER_PATH_SIZE = 768, CONTAINER_SETTINGS_MAX = 3 };
/* Of one sandbox: signals that wait and timers (of the machine's tens of thousands for a user), bytes of message queues. */
enum { CONTAINER_SIGNALS_MAX = 1024, CONTAINER_QUEUES_MAX = 819200 };
/* Descriptors that a way of making containers needs from before: they follow control and births. */
enum { CONTAINER_CONTROL_FD = 3, CONTAINER_BIRTHS_FD, CONTAINER_BROUGHT_FD, CONTAINER_BROUGHT_MAX = 3 };

/* Strings are borrowed. */
struct container_plan {
    uint32_t id;
    const char *image; /* a directory or "host" */
    const char *layers[CONTAINER_LAYERS_MAX];
    size_t layer_count; /* lowest first */
    struct wire_container wanted;
    struct usage *usage;
    int brought[CONTAINER_BROUGHT_MAX];
    size_t brought_count;
    enum tier tier;
    pid_t server;        /* of its file system; 0: the kernel itself */
    const char *disk;    /* of disks.h, or NULL: it is made in the container's own tmpfs */
    const char *scratch; /* where the base mounts is (base_mounts.h) */
    uid_t uid;           /* the spawner's, in its own user namespace; CONTAINER_UID inside */
    gid_t gid;
    bool is_zygote;     /* no sandbox, but what some stand on: no user namespace of its own */
    bool is_host_root; /* root of the host is who runs us: it owns what only root may read */
};

/* What pid 1 keeps of the construction. */
struct container {
    int upper;    /* what was written, as overlayfs stores it; in a container of Landlock's, all there is */
    int disk;     /* a file system of its own that takes it; -1 */
    int commands; /* /run/sluice, which the sandbox can only read */
    int outputs;  /* /run/sluice/out, a tmpfs of its own */
    int proc;     /* the sandbox's /proc, or the host's */
    int base, stage; /* while it is built: the base mounts, and the disk's own root, where all is mounted first */
    const char *workspace; /* home and working directory, as those inside name it; borrowed, as settings are */
    const char *settings[CONTAINER_SETTINGS_MAX]; /* in their environment beside, or in place of, the usual */
    size_t setting_count;
    struct seccomp_notify seccomp_notify; /* of a container of Landlock's */
    char variables[LISTENERS_MAX][LISTENER_VARIABLE_SIZE]; /* what they tell those inside */
};

/* How many files and directories it may make, by the plan. */
uint64_t container_disk_inodes(const struct container_plan *plan);
/* Makes of it what is the same for all: who we are, the network, and on the stage a disk of no size yet, /proc, /dev
 * and /run/sluice. Of the plan it takes what all plans of a spawner share. */
int container_prepare(const struct container_plan *plan, struct container *ret, struct fail *fail);
/* Then the rest, by the whole plan. */
int container_build(const struct container_plan *plan, struct container *container, struct fail *fail);
/* Makes the system call filter of all containers; once, before any. */
void container_prepare_filter(void);
/* `asked` as it is inside: relative to the workspace, and there where it begins with "/workspace". */
int container_path(const struct container *container, const char *asked, char *ret, size_t size);
/* Limits that need the namespaces' rights; then gives those rights up for good. */
int container_confine(const struct container_plan *plan, struct fail *fail);
/* Gives up all rights and system calls but those that a fork server of kernels needs: setns,
 * which what it forks gives up, and binding to CPUs. */
int container_confine_server(struct fail *fail);
/* The calls that no container has. */
void container_deny_calls(struct seccomp_rules *rules, bool is_server);
/* Makes of this process, and of what it starts, the first that the kernel ends when memory runs out. */
int container_offer_to_killer(struct fail *fail);
/* The way back to capabilities that are given up, which takes CAP_SETPCAP. */
int container_drop_bounds(struct fail *fail);
/* All of them but `kept`. */
int container_set_rights(uint32_t kept, struct fail *fail);
/* Both. */
int container_drop_rights(uint32_t kept, struct fail *fail);
/* The filter of container_confine, now ... */
int container_apply_filter(struct fail *fail);
/* ... and for those that come in from there; borrowed. */
struct slice container_filter(void);

/* The limits of the processes inside; set in each before it is executed. */
struct container_limits {
    struct {
        int what; /* RLIMIT_... */
        uint64_t most;
    } each[6];
    size_t count;
};
struct container_limits container_limits(const struct container_plan *plan);
void container_limit(const struct container_plan *plan);

/* ---- steps (container_steps.c) ---------------------------------------- */

/* Opens inside `root` whatever symlinks say; flags O_PATH etc. An fd or -1 with errno. */
int container_open(int root, const char *path, uint64_t flags, mode_t mode);
/* Where the kernel says that a descriptor is; 0, -ENAMETOOLONG or another negative errno. */
int container_name_of(int fd, char *ret, size_t size);
/* Makes a directory and its parents inside `root`; 0 or negative errno. */
int container_make_dirs(int root, const char *path, mode_t mode);
/* A clone of a mounted tree, its whole subtree with `attributes` (MOUNT_ATTR_*); -1, errno. */
int container_clone_tree(int dir, const char *path, uint64_t attributes);
/* Mounts such a clone on a path inside `root`; 0 or -1, errno. */
int container_attach(int tree, int root, const char *path);
int container_attach_clone(int dir, const char *path, uint64_t attributes, int root,
                      const char *target);

/* The host's own system directories, read-only. */
bool host_image_is(const char *image);
/* "usr" ... of those that this host may have; NULL beyond the last. */
const char *host_image_name(size_t i);
/* Their names as the host has them, or has them not, in what is to lie above all layers; mount points and links. */
int host_image_prepare(int top, int skeleton, struct fail *fail);
/* Mounted below tree/ of the base mounts, secrets (masked_paths.h) covered, and from there in a container, links too. */
int host_image_mount(int base, struct fail *fail);
int host_image_attach(int base, int root, struct fail *fail);
/* Of an image of the task's own, by its real path: secrets that lie in it are covered. */
int image_mask_paths(const char *image, int base, int root, struct fail *fail);
/* Of any image: what `root` has of those names, read-only, and a mount on each, which keeps it there. */
int system_names_seal(int root, struct fail *fail);
/* Without mounts: allows them to be read under `rules` (landlock.h), without secrets. */
int host_image_allow(int rules, struct fail *fail);

#endif
