/*
 * plan.h - what a WIRE_CONTAINER asks for, as the spawner and the container's first process both read it: all that
 * a container is made by.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_PLAN_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "workers/sandbox/proto/tier.h"
#include "workers/sandbox/proto/wire.h"

struct spawner_setup;
struct usage;

enum { CONTAINER_LAYERS_MAX = 64, CONTAINER_UID = 1000, CONTAINER_PATH_SIZE = 768, PLAN_DISK_PATH_MAX = 512 };
/* Descriptors that a way of making containers needs from before: they follow control and births. */
enum { CONTAINER_CONTROL_FD = 3, CONTAINER_BIRTHS_FD, CONTAINER_BROUGHT_FD, CONTAINER_BROUGHT_MAX = 3 };

/* Strings are borrowed. */
struct container_plan {
    uint32_t id;
    const char *image; /* a directory or "host" */
    const char *layers[CONTAINER_LAYERS_MAX];
    size_t layer_count;                     /* lowest first */
    const char *harness_name, *harness_dir; /* NULL: none */
    struct wire_container wanted;
    struct usage *usage;
    int brought[CONTAINER_BROUGHT_MAX];
    size_t brought_count;
    enum tier tier;
    pid_t server;        /* of its file system; 0: the kernel itself */
    const char *disk;    /* of disks.h, or NULL: it is made in the container's own tmpfs */
    const char *scratch; /* where the base mounts is (base_mounts.h) */
    uid_t uid;           /* the spawner's, in its own user namespace; wanted.uid inside */
    gid_t gid;
    bool is_zygote;    /* no sandbox, but what some stand on: no user namespace of its own */
    bool is_host_root; /* root of the host is who runs us: it owns what only root may read */
};

/* All but the disk; the strings are the message's. False when it is not one. */
bool plan_read(struct container_plan *ret, const struct wire_message *message, const struct spawner_setup *setup);
/* Where the container's own is in `disks`, the directory of all (disks.h), which is "" where there are none; in `path`,
 * or NULL. */
const char *plan_disk_path(const char *disks, uint32_t id, char path[PLAN_DISK_PATH_MAX]);

#endif
