#include "broker/simulate/world.h"

bool trainer_is_by_hand(const struct sampling *sampling)
{
    return sampling->groups && sampling->way != SAMPLING_SAMPLER;
}

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
    struct trainer *trainer = &world->trainer;
    if (trainer->learning.now > 0) {
        level_add(&trainer->learning, -1, world->now_s);
        trainer->version++;
    }
    if (trainer_is_by_hand(&world->load->sampling))
        trainer->is_filling = true;
    else
        by_sampler_ask(world);
    world_settle(world);
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

void trainer_learns(struct world *world)
{
    world->trainer.batches++;
    level_add(&world->trainer.learning, 1, world->now_s);
    world_event(world, world->now_s + world->load->sampling.train_s, EVENT_ASK, 0);
}
