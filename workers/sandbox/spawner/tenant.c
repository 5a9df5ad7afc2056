#include "workers/sandbox/spawner/tenant.h"

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
static struct weight weigh(const struct tenant *tenant, const pid_t *pids, size_t count)
{
    struct weight total = {.kib = proc_segments_kib(tenant->own[OWN_SEGMENTS])};
    for (size_t i = 0; i < count; i++) {
        uint64_t kib, threads;
        if (!proc_weigh(tenant->own[OWN_PROC], pids[i], &kib, &threads))
            continue;
        total.kib += kib;
        total.threads += threads;
    }
    return total;
}

static uint64_t weigh_exactly_kib(const struct tenant *tenant, const pid_t *pids, size_t count)
{
    uint64_t segments = proc_segments_kib(tenant->own[OWN_SEGMENTS]);
    struct proportions total = {0, 0};
    for (size_t i = 0; i < count; i++) {
        struct proportions one = proc_proportions(tenant->own[OWN_PROC], pids[i]);
        total.kib += one.kib;
        total.shared_kib += one.shared_kib;
    }
    return total.kib + (segments > total.shared_kib ? segments - total.shared_kib : 0);
}

/* What is in no process's account: data in sockets, and what lies among the outputs. */
static uint64_t weigh_rest_kib(const struct tenant *tenant)
{
    struct statfs outputs;
    uint64_t kib = socket_memory_kib(tenant->own[OWN_SOCKETS], tenant->own[OWN_ASK]);
    if (tenant->own[OWN_OUTPUTS] >= 0 && fstatfs(tenant->own[OWN_OUTPUTS], &outputs) == 0)
        kib += (outputs.f_blocks - outputs.f_bfree) * (uint64_t)outputs.f_bsize / 1024;
    return kib;
}

/* Where the kernel holds no limit: all processes are looked at. */
static enum limit_id weigh_all(const struct tenant *tenant, struct tenant_sight *sight)
{
    pid_t *pids = sight->inside;
    size_t count = tenant->first == 1 ? proc_inside(tenant->own[OWN_PROC], 1, pids, PROC_SEEN_MAX)
                                      : proc_inside_of(&sight->host, tenant->first, pids, PROC_SEEN_MAX);
    struct weight weight = weigh(tenant, pids, count);
    usage_peak(&tenant->usage->processes, weight.threads);
    usage_see(tenant->usage, LIMIT_PROCESSES, weight.threads >= tenant->limits.processes);
    if (weight.threads > tenant->limits.processes + PROCESSES_SLACK)
        return LIMIT_PROCESSES;
    const uint64_t most_kib = tenant->limits.memory_mib * 1024, rest_kib = weigh_rest_kib(tenant);
    weight.kib += rest_kib;
    if (weight.kib > most_kib)
        weight.kib = weigh_exactly_kib(tenant, pids, count) + rest_kib;
    usage_peak(&tenant->usage->memory_kib, weight.kib);
    usage_see(tenant->usage, LIMIT_MEMORY, weight.kib > most_kib);
    return weight.kib > most_kib ? LIMIT_MEMORY : LIMIT_COUNT;
}

enum limit_id tenant_look(const struct tenant *tenant, struct tenant_sight *sight)
{
    usage_see_disk(tenant->usage, tenant->own[OWN_DISK]);
    return tenant->cgroup < 0 ? weigh_all(tenant, sight) : cgroup_look(tenant->cgroup, &tenant->limits, tenant->usage);
}
