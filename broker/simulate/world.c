#include "broker/simulate/world.h"

#include <stdio.h>
#include <stdlib.h>

void world_event(struct world *world, double at_s, enum event event, uint32_t what)
{
    world->failed |= !agenda_push(&world->agenda, (struct due){at_s, what, event});
}

void prompt_forget(struct world *world, struct group *group)
{
    while (group->prefixes) {
        struct group_prefix *shared = group->prefixes;
        prefix_forget(&world->servers[shared->server].cache, &shared->prefix);
        group->prefixes = shared->next;
        free(shared);
    }
}

uint32_t world_number(struct slice text)
{
    uint32_t number = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] >= '0' && text.data[i] <= '9')
            number = number * 10 + (uint32_t)(text.data[i] - '0');
    return number;
}

void group_name(uint64_t number, char ret[24]) { snprintf(ret, 24, "g%llu", (unsigned long long)number); }

uint64_t world_sample(const struct world *world, const struct job *job)
{
    return world->groups[job->group].attempt * world->load->samples + job->sample;
}
