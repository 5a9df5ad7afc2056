#include "workers/sandbox/spawner/sandbox_entry.h"

#include <sys/vfs.h>

#include "workers/sandbox/init/proc.h"
#include "workers/sandbox/init/socket_memory.h"

enum { PROCESSES_SLACK = 16 /* RLIMIT_NPROC's work, except where root runs us */ };

_Static_assert(PROC_SEEN_MAX > LIMIT_PROCESSES_MAX + PROCESSES_SLACK + 1,
               "pid 1 and more than the limit are seen, whatever the limit is");

struct weight {
    uint64_t kib, threads;
};

/* Shared pages counted whole, segments of shared memory once more. */
static struct weight weigh(const struct sandbox_entry *entry, const pid_t *pids, size_t count)
{
    struct weight total = {.kib = proc_segments_kib(entry->own[OWN_SEGMENTS])};
    for (size_t i = 0; i < count; i++) {
        uint64_t kib, threads;
        if (!proc_weigh(entry->own[OWN_PROC], pids[i], &kib, &threads))
            continue;
        total.kib += kib;
        total.threads += threads;
    }
    return total;
}

static uint64_t weigh_exactly_kib(const struct sandbox_entry *entry, const pid_t *pids, size_t count)
{
    uint64_t segments = proc_segments_kib(entry->own[OWN_SEGMENTS]);
    struct proportions total = {0, 0};
    for (size_t i = 0; i < count; i++) {
        struct proportions one = proc_proportions(entry->own[OWN_PROC], pids[i]);
        total.kib += one.kib;
        total.shared_kib += one.shared_kib;
    }
    return total.kib + (segments > total.shared_kib ? segments - total.shared_kib : 0);
}

/* What is in no process's account: data in sockets, and what lies among the outputs. */
static uint64_t weigh_rest_kib(const struct sandbox_entry *entry)
{
    struct statfs outputs;
    uint64_t kib = socket_memory_kib(entry->own[OWN_SOCKETS], entry->own[OWN_ASK]);
    if (entry->own[OWN_OUTPUTS] >= 0 && fstatfs(entry->own[OWN_OUTPUTS], &outputs) == 0)
        kib += (outputs.f_blocks - outputs.f_bfree) * (uint64_t)outputs.f_bsize / 1024;
    return kib;
}

/* Where the kernel holds no limit: all processes are looked at. */
static enum limit_id weigh_all(const struct sandbox_entry *entry, struct entry_usage *sight)
{
    pid_t *pids = sight->inside;
    size_t count = entry->first == 1 ? proc_inside(entry->own[OWN_PROC], 1, pids, PROC_SEEN_MAX)
                                     : proc_inside_of(&sight->host, entry->first, pids, PROC_SEEN_MAX);
    struct weight weight = weigh(entry, pids, count);
    usage_peak(&entry->usage->processes, weight.threads);
    usage_see(entry->usage, LIMIT_PROCESSES, weight.threads >= entry->limits.processes);
    if (weight.threads > entry->limits.processes + PROCESSES_SLACK)
        return LIMIT_PROCESSES;
    const uint64_t most_kib = entry->limits.memory_mib * 1024, rest_kib = weigh_rest_kib(entry);
    weight.kib += rest_kib;
    if (weight.kib > most_kib)
        weight.kib = weigh_exactly_kib(entry, pids, count) + rest_kib;
    usage_peak(&entry->usage->memory_kib, weight.kib);
    usage_see(entry->usage, LIMIT_MEMORY, weight.kib > most_kib);
    return weight.kib > most_kib ? LIMIT_MEMORY : LIMIT_COUNT;
}

enum limit_id entry_look(const struct sandbox_entry *entry, struct entry_usage *sight)
{
    usage_see_disk(entry->usage, entry->own[OWN_DISK]);
    return entry->cgroup < 0 ? weigh_all(entry, sight) : cgroup_look(entry->cgroup, &entry->limits, entry->usage);
}
