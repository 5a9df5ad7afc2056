/* What a sampler tells its trainer, and what the rollouts of its tasks are rewarded. */
#include "broker/core/state/sampler.h"
#include "broker/simulate/world.h"
#include "common/base/prng.h"

enum { KIND_REWARDS = 3, PER_GROUP = 1024 };

static const double again_s = 1; /* after a wait that was in vain */

static void take_batch(struct world *world)
{
    world->trainer.batches++;
    level_add(&world->trainer.learning, 1, world->now_s);
    world_event(world, world->now_s + world->load->sampling.train_s, EVENT_ASK, 0);
}

/* A group's verdict is written once as ready or dropped; one that is ready may be written again as it is told. */
static void see_group(struct world *world, const struct core_sampled *row)
{
    world->trainer.kept += row->state == SAMPLED_CURRENT;
    world->trainer.dropped += row->state == SAMPLED_DROPPED;
}

void batches_see(struct world *world, const struct effect *effect)
{
    enum message_id id;
    if (effect->kind == PERSIST_SAMPLED && effect->present)
        see_group(world, effect->sampled);
    if (effect->kind != SEND_CLIENT || !world->load->sampling.groups || !message_peek(effect->bytes, &id, NULL))
        return;
    if (id == MSG_sampler_batch)
        take_batch(world);
    else if (id == MSG_sampler_waits)
        world_event(world, world->now_s + again_s, EVENT_ASK, 0);
}

double batches_reward(const struct world *world, const struct job *job)
{
    const struct sampling *sampling = &world->load->sampling;
    if (!sampling->groups)
        return 1;
    uint64_t task = prng_of(world->load->seed, KIND_REWARDS, (uint64_t)job->group * PER_GROUP + PER_GROUP - 1);
    uint64_t rollout = prng_of(world->load->seed, KIND_REWARDS, (uint64_t)job->group * PER_GROUP + job->sample);
    const double chance = sampling->hardest + (sampling->easiest - sampling->hardest) * prng_uniform(&task);
    prng_next(&rollout);
    return prng_uniform(&rollout) < chance;
}
