#include "workers/sandbox/container/spawner_setup.h"

#include "workers/sandbox/cgroup/cgroup_base.h"

size_t spawner_list_given(struct spawner_setup *setup, int *ret_given[SPAWNER_GIVEN_MAX])
{
    size_t count = 0;
    ret_given[count++] = &setup->usages_fd;
    if (setup->tier == TIER_apptainer)
        ret_given[count++] = &setup->apptainer_program;
    if (cgroups_are_there(&setup->cgroups)) {
        ret_given[count++] = &setup->cgroups.base;
        ret_given[count++] = &setup->cgroups.ours;
    }
    return count;
}
