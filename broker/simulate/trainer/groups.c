/* Where groups are, what is sampled in them, and what their rollouts are rewarded. */
#include "broker/simulate/world.h"
#include "common/base/prng.h"

enum { KIND_REWARDS = 3, PER_GROUP = 1024 };

void group_submitted(struct world *world, struct group *group)
{
    group->state = GROUP_LIVE;
    world->trainer.tally.groups[GROUP_LIVE]++;
    world->trainer.waiting += world->load->samples;
}

void group_run_begins(struct world *world, struct group *group)
{
    world->trainer.waiting--;
    if (group->is_asked)
        return;
    group->is_asked = true;
    group->version = world->trainer.version;
    world->trainer.tally.asked++;
}

void group_count_tokens(struct world *world, struct group *group, uint64_t tokens)
{
    group->tokens += tokens;
    world->trainer.tally.tokens[group->state] += tokens;
}

void group_move(struct world *world, struct group *group, enum group_state state)
{
    struct tally *tally = &world->trainer.tally;
    if (group->state == state)
        return;
    tally->kept += group->state == GROUP_LIVE && (state == GROUP_READY || state == GROUP_IN_BATCH);
    tally->ages += state == GROUP_IN_BATCH ? world->trainer.version - group->version : 0;
    tally->groups[group->state]--;
    tally->tokens[group->state] -= group->tokens;
    group->state = state;
    tally->groups[state]++;
    tally->tokens[state] += group->tokens;
}

/* ---- rewards -------------------------------------------------------------------------------- */

/* As hard as tasks are for the version that its first run began with. */
static const struct solved *solved_of(const struct sampling *sampling, uint64_t version)
{
    return &sampling->solved[version < sampling->solved_count ? version : sampling->solved_count - 1];
}

uint64_t group_sample(const struct world *world, const struct job *job)
{
    return world->groups[job->group].attempt * world->load->samples + job->sample;
}

double group_reward(const struct world *world, const struct job *job)
{
    const struct sampling *sampling = &world->load->sampling;
    const struct group *group = &world->groups[job->group];
    if (!sampling->groups)
        return 1;
    const uint64_t first = (uint64_t)group->task * PER_GROUP;
    uint64_t task = prng_of(world->load->seed, KIND_REWARDS, first + PER_GROUP - 1);
    uint64_t rollout = prng_of(world->load->seed, KIND_REWARDS, first + group_sample(world, job));
    const struct solved *solved = solved_of(sampling, group->version);
    const double chance = solved->least + (solved->most - solved->least) * prng_uniform(&task);
    prng_next(&rollout);
    return prng_uniform(&rollout) < chance;
}

/* The mean of x^n between two bounds. */
static double mean_power(double least, double most, double n)
{
    return most > least ? (pow(most, n + 1) - pow(least, n + 1)) / (n + 1) / (most - least) : pow(least, n);
}

double sampling_acceptance(const struct sampling *sampling, uint64_t samples)
{
    const double n = (double)samples;
    double acceptance = 1;
    for (size_t i = 0; i < sampling->solved_count; i++) {
        const struct solved *solved = &sampling->solved[i];
        const double mixed = 1 - mean_power(solved->least, solved->most, n) -
                             mean_power(1 - solved->most, 1 - solved->least, n);
        acceptance = mixed < acceptance ? mixed : acceptance;
    }
    return acceptance;
}
