/*
 * A trainer that does by itself what a sampler does for others: with submits and cancels alone.
 *
 * rounds: submits a round of groups, waits until all have ended, keeps those whose rewards differ, and submits the next
 * round while they are fewer than a batch. Of those that are kept the first make the batch; the others are thrown away.
 *
 * carry-prompts: submits a batch of groups whenever no rollout waits for a run slot and one is free, until as many as
 * a batch are kept. Then all others are cancelled and thrown away; their prompts are the first of the next batch.
 *
 * In both nothing is at work while the trainer learns.
 */
#include "broker/simulate/world.h"

/* ---- what it submits ------------------------------------------------------------------------ */

/* The prompt that was carried longest, or a new one. */
static void submit_one(struct world *world)
{
    struct trainer *trainer = &world->trainer;
    if (trainer->carried == NOBODY) {
        world_submit(world);
        return;
    }
    const struct group *before = &world->groups[trainer->carried];
    trainer->carried = before->next_carried;
    world_submit_again(world, before);
}

/* False when there is none left. */
static bool submit_some(struct world *world, uint64_t groups)
{
    const uint64_t left = world->load->groups - world->submitted;
    const uint64_t count = groups < left ? groups : left;
    for (uint64_t i = 0; i < count; i++)
        submit_one(world);
    return count > 0;
}

/* ---- a batch ---------------------------------------------------------------------------------- */

static void cancel(struct world *world, uint64_t number)
{
    char name[24];
    group_name(number, name);
    struct msg_rollout_cancel in = {.group = slice_from_str(name), .has_group = true};
    world_say(world, "trainer", MSG_rollout_cancel, &in);
}

/* Of the groups submitted for it: the first that are ready are the batch, what is at work is carried. */
static void take_batch(struct world *world)
{
    struct trainer *trainer = &world->trainer;
    uint64_t missing = world->load->sampling.groups;
    uint32_t carried = trainer->carried, *last = &carried;
    for (uint64_t g = trainer->first; g < world->submitted; g++) {
        struct group *group = &world->groups[g];
        if (group->state == GROUP_READY && missing) {
            missing--;
            group_move(world, group, GROUP_IN_BATCH);
        } else if (group->state == GROUP_READY) {
            group_move(world, group, GROUP_WASTED);
        } else if (group->state == GROUP_LIVE) {
            cancel(world, g);
            group_move(world, group, GROUP_WASTED);
            group->next_carried = *last;
            *last = (uint32_t)g;
            last = &group->next_carried;
        }
    }
    trainer->carried = carried;
    trainer->first = world->submitted;
    trainer->waiting = 0;
    trainer->is_filling = false;
    trainer_learns(world);
}

bool by_hand_acts(struct world *world)
{
    const struct sampling *sampling = &world->load->sampling;
    const struct trainer *trainer = &world->trainer;
    const struct fleet *fleet = world->fleet;
    if (!trainer->is_filling)
        return false;
    const bool is_full = trainer->tally.groups[GROUP_READY] >= sampling->groups;
    const bool has_slot = world->held[STAGE_RUN].now < (double)(fleet->slots[STAGE_RUN] * fleet->workers[STAGE_RUN]);
    const bool is_rounds = sampling->way == SAMPLING_ROUNDS;
    if (is_rounds ? trainer->tally.groups[GROUP_LIVE] > 0 : !is_full && (trainer->waiting > 0 || !has_slot))
        return false;
    if (!is_full)
        return submit_some(world, is_rounds ? sampling->round : sampling->groups);
    take_batch(world);
    return true;
}

/* ---- what it is told ---------------------------------------------------------------------------- */

void by_hand_see(struct world *world, const struct effect *effect)
{
    if (effect->kind != PERSIST_END)
        return;
    struct group *group = &world->groups[world_number(effect->end.group)];
    group->ended++;
    group->solved += effect->end.has_reward && effect->end.reward > 0;
    if (group->state != GROUP_LIVE || group->ended < world->load->samples)
        return;
    group_move(world, group, group->solved && group->solved < group->ended ? GROUP_READY : GROUP_FILTERED);
}
