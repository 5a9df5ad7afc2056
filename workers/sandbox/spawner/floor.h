/*
 * floor.h - what the sandboxes of one image that run kernels stand on: a pid namespace around
 * theirs, and in it, on that image alone, the fork server of their kernels (ipython_zygote.py).
 *
 * The fork server is the image's Python with the image's modules, so it is trusted no more than
 * what runs in the sandboxes: it has no capability, no network, no file of ours, the sandboxes'
 * system call filter but for setns, and can see and signal processes of its own image only. It
 * enters a sandbox whose namespaces it is handed because it has the uid that owns the spawner's user
 * namespace (apart.h), and only from a pid namespace around the sandbox's: hence the floor.
 *
 * Nothing in a sandbox can reach it: it is in no namespace of theirs, and no socket leads there.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_FLOOR_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_FLOOR_H

#include "workers/sandbox/container/container.h"
#include "workers/sandbox/spawner/prewarmed.h"

enum { FLOORS_MAX = 16 };

struct floor {
    char *image; /* NULL: none */
    pid_t pid;   /* its pid 1: our own code, which waits */
    int pids;    /* its pid namespace */
    int server;  /* requests to the fork server; -1 once it is gone */
    struct prewarmed prewarmed;
    size_t users; /* sandboxes on it */
    int64_t used_ms;
};

struct floors {
    struct floor each[FLOORS_MAX];
};

/* The floor of the plan's image, made if need be, with one sandbox more on it. NULL where it is to have none, or none
 * can be had: its kernels start slowly then. */
struct floor *floors_join(struct floors *floors, const struct container_plan *plan);
/* Clones pid 1 of a sandbox on it, in that group (-1: none), a child of the caller: 0 in it, else its pid and pidfd, or
 * negative errno. `keeps` as for high_fds_clone (high_fds.h). */
pid_t floor_clone(const struct floor *floor, int keeps, int cgroup, int *ret_pidfd);
/* One sandbox less; its floor stays for the next. */
void floors_leave(struct floor *floor);
/* Kills them all. */
void floors_end(struct floors *floors);
/* Notes the end of a process that may have been a floor, or was to be a sandbox on one. */
void floors_forget(struct floors *floors, pid_t pid);

/*
 * Asks for a kernel; its channel, its output and the namespaces of its sandbox (WIRE_INSIDE) in
 * `fds`; it is to be in `cgroup` (-1: none). 0: it was asked; -ENOENT: there is no fork server.
 */
int floor_fork_kernel(struct floor *floor, const struct container_plan *limits, int cgroup, const int *fds,
                      size_t fd_count);

#endif
