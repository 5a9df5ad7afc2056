/* A trainer that takes batches of a sampler (docs/sampler.md): what it asks, and what it is told. */
#include "broker/core/state/sampler.h"
#include "broker/simulate/world.h"
#include "schemas/messages/message_max.h"

static const double again_s = 1; /* after a wait that was in vain */

static const struct slice stream = {(const uint8_t *)"s", 1}, trainer = {(const uint8_t *)"t", 1};

void by_sampler_begin(struct world *world)
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
    world_say(world, "trainer", MSG_sampler_open, &in);
}

void by_sampler_ask(struct world *world)
{
    struct msg_sampler_next in = {.stream = stream,
                                  .trainer = trainer,
                                  .batch = world->trainer.batches + 1,
                                  .wait_ms = MESSAGE_MAX(sampler_next, wait_ms),
                                  .has_wait_ms = true};
    world_say(world, "trainer", MSG_sampler_next, &in);
}

static bool is_uniform(uint64_t verdict)
{
    return verdict == SAMPLER_UNIFORM_0 || verdict == SAMPLER_UNIFORM_1 || verdict == SAMPLER_UNIFORM_OTHER;
}

static void see_row(struct world *world, const struct core_sampled *row)
{
    struct group *group = &world->groups[world_number(row->group)];
    switch ((enum sampled_state)row->state) {
    case SAMPLED_READY: group_move(world, group, GROUP_READY); break;
    case SAMPLED_CURRENT: group_move(world, group, GROUP_IN_BATCH); break;
    case SAMPLED_DROPPED: group_move(world, group, is_uniform(row->verdict) ? GROUP_FILTERED : GROUP_WASTED); break;
    default: break;
    }
}

void by_sampler_see(struct world *world, const struct effect *effect)
{
    enum message_id id;
    if (effect->kind == PERSIST_SAMPLED && effect->present)
        see_row(world, effect->sampled);
    if (effect->kind != SEND_CLIENT || !message_peek(effect->bytes, &id, NULL))
        return;
    if (id == MSG_sampler_batch)
        trainer_learns(world);
    else if (id == MSG_sampler_waits)
        world_event(world, world->now_s + again_s, EVENT_ASK, 0);
}
