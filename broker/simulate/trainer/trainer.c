#include "broker/simulate/world.h"

bool trainer_is_by_hand(const struct sampling *sampling)
{
    return sampling->groups && sampling->way != SAMPLING_SAMPLER;
}

void trainer_learns(struct world *world)
{
    world->trainer.batches++;
    level_add(&world->trainer.learning, 1, world->now_s);
    world_event(world, world->now_s + world->load->sampling.train_s, EVENT_ASK, 0);
}

void trainer_has_learned(struct world *world)
{
    struct trainer *trainer = &world->trainer;
    if (trainer->learning.now > 0) {
        level_add(&trainer->learning, -1, world->now_s);
        trainer->version++;
    }
}
