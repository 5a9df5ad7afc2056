/* A trainer's way to its batches is chosen here. */
#include "broker/simulate/world.h"

void trainer_begin(struct world *world)
{
    const struct sampling *sampling = &world->load->sampling;
    if (!sampling->groups)
        return;
    world->trainer.carried = NOBODY;
    if (sampling->way == SAMPLING_SAMPLER)
        by_sampler_begin(world);
    world_event(world, world->now_s, EVENT_ASK, 0);
}

void trainer_ask(struct world *world)
{
    trainer_has_learned(world);
    if (trainer_is_by_hand(&world->load->sampling))
        world->trainer.is_filling = true;
    else
        by_sampler_ask(world);
}

void trainer_see(struct world *world, const struct effect *effect)
{
    if (!world->load->sampling.groups)
        return;
    if (trainer_is_by_hand(&world->load->sampling))
        by_hand_see(world, effect);
    else
        by_sampler_see(world, effect);
}
