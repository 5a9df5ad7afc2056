/*
 * zygote.h - what the sandboxes of one image that run kernels stand on: a pid namespace around
 * theirs, and in it, on that image alone, the fork server of their kernels (ipython_zygote.py).
 *
 * The fork server is the image's Python with the image's modules, so it is trusted no more than
 * what runs in the sandboxes: it has no capability, no network, no file of ours, the sandboxes'
 * system call filter but for setns, and can see and signal processes of its own image only. It
 * enters a sandbox whose namespaces it is handed because it has the uid that owns the spawner's user
 * namespace (namespaces.h), and only from a pid namespace around the sandbox's: hence the zygote.
 *
 * Nothing in a sandbox can reach it: it is in no namespace of theirs, and no socket leads there.
 */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_ZYGOTE_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_ZYGOTE_H

#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/spawner/prewarmed.h"

enum { ZYGOTES_MAX = 16 };

struct zygote {
    char *image; /* NULL: none */
    pid_t pid;   /* its pid 1: our own code, which waits */
    int pids;    /* its pid namespace */
    int server;  /* requests to the fork server; -1 once it is gone */
    struct prewarmed prewarmed;
    size_t users; /* sandboxes on it */
    int64_t used_ms;
};

struct zygotes {
    struct zygote each[ZYGOTES_MAX];
};

/* The zygote of the plan's image, made if need be, with one sandbox more on it. NULL where it is to have none, or none
 * can be had: its kernels start slowly then. */
struct zygote *zygotes_join(struct zygotes *zygotes, const struct container_plan *plan);
/* Clones pid 1 of a sandbox on it, in that group (-1: none), a child of the caller: 0 in it, else its pid and pidfd, or
 * negative errno. `keeps` as for high_fds_clone (high_fds.h). */
pid_t zygote_clone(const struct zygote *zygote, int keeps, int cgroup, int *ret_pidfd);
/* One sandbox less; its zygote stays for the next. */
void zygotes_leave(struct zygote *zygote);
/* Kills them all. */
void zygotes_end(struct zygotes *zygotes);
/* Notes the end of a process that may have been a zygote, or was to be a sandbox on one. */
void zygotes_forget(struct zygotes *zygotes, pid_t pid);

/*
 * Asks for a kernel; its channel, its output and the namespaces of its sandbox (WIRE_INSIDE) in
 * `fds`; it is to be in `cgroup` (-1: none). 0: it was asked; -ENOENT: there is no fork server.
 */
int zygote_fork_kernel(struct zygote *zygote, const struct container_plan *limits, int cgroup, const int *fds,
                       size_t fd_count);

#endif
