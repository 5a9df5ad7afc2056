#include "broker/simulate/world.h"

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
