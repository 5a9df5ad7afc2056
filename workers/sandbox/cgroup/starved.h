/*
 * starved.h - how many processes the kernel has ended for want of memory, among which those of a sandbox may be that
 * has no group of its own (cgroup.h): in the memory cgroup that this process is in, or in one above where that does not
 * tell, else on the whole node. The number only grows.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CGROUP_STARVED_H
#define SLUICE_WORKERS_SANDBOX_CGROUP_STARVED_H

#include <stdint.h>

uint64_t starved_count(void);

extern const char *starved_root; /* what is put before /proc and /sys; "" but in tests */

#endif
