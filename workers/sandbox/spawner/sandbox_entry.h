/* sandbox_entry.h - a sandbox as its spawner knows it, and the look at what it uses. */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_SANDBOX_ENTRY_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_SANDBOX_ENTRY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "workers/sandbox/cgroup/cgroup.h"
#include "workers/sandbox/spawner/zygote.h"
#include "workers/sandbox/proto/usage.h"
#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/proto/wire.h"

struct sandbox_entry {
    uint32_t id;
    pid_t pid, first;   /* first: the same as those inside know it */
    pid_t server;       /* of its file system; 0: none, -1: it is gone */
    int own[OWN_COUNT]; /* each -1 until it is born, or where it has none */
    int its_end;        /* as in prewarmed.h; -1 once it is born */
    uint64_t file_mib;
    cpu_set_t cpus;
    struct usage *usage;
    bool breached;
    struct zygote *zygote;       /* or NULL */
    int cgroup;                  /* -1 */
    uint32_t group;              /* its number */
    struct cgroup_limits limits; /* whoever holds them */
};

/* Container for a look at all entries. */
struct entry_usage {
    struct proc_census host; /* taken before it, where there are no pid namespaces */
    pid_t inside[PROC_SEEN_MAX];
};
/* Notes what it uses. The limit that it must be killed for, or LIMIT_COUNT. */
enum limit_id entry_look(const struct sandbox_entry *entry, struct entry_usage *sight);

#endif
