/* cpus.h - which CPUs of the node a sandbox is bound to: those that the fewest others are. */
#ifndef SLUICE_WORKERS_SANDBOX_SPAWNER_CPUS_H
#define SLUICE_WORKERS_SANDBOX_SPAWNER_CPUS_H

#include <sched.h>
#include <stdint.h>

struct cpus {
    cpu_set_t ours;
    uint32_t load[CPU_SETSIZE]; /* sandboxes bound to each */
};

void cpus_init(struct cpus *cpus);
/* `count` of them; none when that is all of them, or 0. */
void cpus_choose(const struct cpus *cpus, uint64_t count, cpu_set_t *ret);
/* One more sandbox bound to the set, or (-1) one less. */
void cpus_load(struct cpus *cpus, const cpu_set_t *set, int change);

#endif
