#include "workers/sandbox/spawner/cpus.h"

void cpus_init(struct cpus *cpus)
{
    CPU_ZERO(&cpus->ours);
    sched_getaffinity(0, sizeof(cpus->ours), &cpus->ours);
}

void cpus_choose(const struct cpus *cpus, uint64_t count, cpu_set_t *ret)
{
    CPU_ZERO(ret);
    if (count == 0 || count >= (uint64_t)CPU_COUNT(&cpus->ours))
        return;
    for (; count > 0; count--) {
        int least = -1;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &cpus->ours) && !CPU_ISSET(cpu, ret) &&
                (least < 0 || cpus->load[cpu] < cpus->load[least]))
                least = cpu;
        CPU_SET(least, ret);
    }
}

void cpus_load(struct cpus *cpus, const cpu_set_t *set, int change)
{
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(set) > 0; cpu++)
        if (CPU_ISSET(cpu, set))
            cpus->load[cpu] += (uint32_t)change;
}
