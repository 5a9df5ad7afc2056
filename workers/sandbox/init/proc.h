/* proc.h - the processes of one pid namespace, read from a descriptor of its /proc. */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_PROC_H
#define SLUICE_WORKERS_SANDBOX_INIT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "schemas/limits.h"

/* Of one sandbox: all there can be before it is killed for having too many. */
enum { PROC_SEEN_MAX = LIMIT_PROCESSES_MAX + 64 };
/* Of the machine, among whom those are looked for where there are no pid namespaces. */
enum { PROC_HOST_MAX = 1 << 17 };

/* All who live at one time, and their parents; 0 and 0 in place of the dead. */
struct proc_census {
    size_t count;
    pid_t pids[PROC_HOST_MAX], parents[PROC_HOST_MAX];
};
void proc_take_census(int proc, struct proc_census *ret);
/* `root` and all its living descendants that have their parents still, at most `max`; their number. */
size_t proc_tree(int proc, pid_t root, pid_t *ret, size_t max);
/* Who is left alone when all others are killed. */
struct proc_spared {
    pid_t alone;        /* itself, not what it started; 0: none */
    const pid_t *roots; /* these with their descendants */
    size_t root_count;
    uint64_t before; /* and with theirs all that began before: in ticks since boot; 0: none */
};
/* The living of a sandbox who are neither its first process nor spared, at most `max`; their number. */
size_t proc_others(int proc, pid_t first, const struct proc_spared *spared, pid_t *ret, size_t max);
/* All of a sandbox but its first process, in the order of their pids: in a pid namespace of its own, where that is 1,
 * all there are; else what descends from it. */
size_t proc_inside(int proc, pid_t first, pid_t *ret, size_t max);
/* The same by a census of the host, where there are no pid namespaces. */
size_t proc_inside_of(const struct proc_census *census, pid_t first, pid_t *ret, size_t max);
/* Its living children. */
size_t proc_children(int proc, pid_t parent, pid_t *ret, size_t max);
/* A signal for `root`, unless that is `spared`, and all its descendants. SIGKILL: frozen first, they cannot
 * leave children behind for the next kill to miss. */
void proc_signal_tree(int proc, pid_t root, pid_t spared, int signal);
/* 'R', 'S', 'T', 'Z' ... of /proc/PID/stat; 0 when it is gone. */
char proc_state(int proc, pid_t pid);
/* Whether none of its threads runs or will before somebody else does: stopped, dead, or waiting in the kernel. */
bool proc_is_still(int proc, pid_t pid);
/* Resident memory in KiB, shared pages counted whole, and threads; cheap. False when it is gone. */
bool proc_weigh(int proc, pid_t pid, uint64_t *kib, uint64_t *threads);
/* The memory with shared pages divided among who shares them, and what of it is shared memory;
 * exact and ten times dearer. */
struct proportions {
    uint64_t kib, shared_kib;
};
struct proportions proc_proportions(int proc, pid_t pid);
/* All System V shared memory, from a descriptor of /proc/sysvipc/shm (it stays with the ipc
 * namespace that it was opened in): who has it attached need not have it in his account. */
uint64_t proc_segments_kib(int segments);

#endif
