/* A trainer that takes batches of a sampler (docs/sampler.md): what it asks. */
#include "broker/simulate/world.h"
#include "schemas/messages/message_max.h"

static const struct slice stream = {(const uint8_t *)"s", 1}, trainer = {(const uint8_t *)"t", 1};

void trainer_begin(struct world *world)
{
    const struct sampling *sampling = &world->load->sampling;
    struct msg_sampler_open in = {.stream = stream,
                                  .trainer = trainer,
                                  .groups = sampling->groups,
                                  .ahead = sampling->ahead,
                                  .has_ahead = true,
                                  .window = sampling->window,
                                  .has_window = sampling->window > 0,
                                  .over_sample = sampling->over_sample,
                                  .has_over_sample = sampling->over_sample > 0,
                                  .early = sampling->early,
                                  .has_early = sampling->early > 0};
    if (!sampling->groups)
        return;
    world_say(world, "trainer", MSG_sampler_open, &in);
    world_event(world, world->now_s, EVENT_ASK, 0);
}

void trainer_ask(struct world *world)
{
    struct msg_sampler_next in = {.stream = stream,
                                  .trainer = trainer,
                                  .batch = world->trainer.batches + 1,
                                  .wait_ms = MESSAGE_MAX(sampler_next, wait_ms),
                                  .has_wait_ms = true};
    if (world->trainer.learning.now > 0)
        level_add(&world->trainer.learning, -1, world->now_s);
    world_say(world, "trainer", MSG_sampler_next, &in);
    world_settle(world);
}
