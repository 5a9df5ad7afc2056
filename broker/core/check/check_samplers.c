#include "broker/core/check/check_samplers.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/sampler/sampling.h"
#include "broker/core/state/state.h"

typedef const char *verdict; /* NULL, or what is broken */

static verdict check_group(const struct sampler *sampler, const struct sampled *sampled, unsigned state)
{
    const bool is_open = state == SAMPLED_HELD || state == SAMPLED_LIVE;
    const struct group_work *work = sampled->group ? sampled->group->work : NULL;
    if (sampled->row.state != state || sampled->sampler != sampler)
        return "a sampler's group is in the list of another state, or of another sampler";
    if (is_open != (work != NULL) || (work && work->sampled != sampled))
        return "a group has a verdict and lives, or has none and does not";
    if (work && (work->init.place == PLACE_HELD) != (state == SAMPLED_HELD))
        return "a group is held that was released, or released and held";
    if (work && sampled->row.ended + work->live != sampled->row.samples)
        return "a sampler counts the ended rollouts of a group wrong";
    if (!is_open && (state != SAMPLED_DROPPED) != (sampled->row.verdict == SAMPLER_KEPT))
        return "a group was dropped that is kept, or is ready and is not";
    if (!list_is_empty(&sampled->noted))
        return "what changed of a sampler's group was not written";
    const bool is_needed = state != SAMPLED_DROPPED && sampled->row.first_seq && !sampled->row.is_forgotten;
    if (is_needed != (sampled->needed.place != 0))
        return "a sampler's group needs trajectories that may go, or none that may not";
    return is_needed && sampled->row.first_seq < sampler->stream->first ? "a trajectory is gone that a sampler needs"
                                                                        : NULL;
}

static verdict check_state(const struct sampler *sampler, unsigned state)
{
    size_t count = 0;
    uint64_t number = 0;
    const struct sampled *sampled;
    LIST_EACH(sampled, &sampler->groups[state], link) {
        verdict bad = check_group(sampler, sampled, state);
        if (bad)
            return bad;
        if (sampled->row.number <= number || sampled->row.number > sampler->row.submitted)
            return "the groups of a sampler are not in the order of their submits";
        number = sampled->row.number;
        count++;
    }
    return count == sampler->counts[state] ? NULL : "a sampler's groups are counted wrong";
}

/* Each group that was ever submitted is in one place. */
static verdict check_sum(const struct sampler *sampler)
{
    uint64_t sum = sampler->row.batched;
    for (unsigned state = 0; state < SAMPLED_DROPPED; state++)
        sum += sampler->counts[state];
    for (unsigned i = SAMPLER_KEPT + 1; i < SAMPLER_VERDICTS; i++)
        sum += sampler->row.total[i];
    if (sum != sampler->row.submitted)
        return "held, live, ready, batched and dropped groups are not those that were submitted";
    if (sampler->row.total[SAMPLER_KEPT] != sampler->row.batched + sampler->counts[SAMPLED_CURRENT] ||
        sampler->row.since[SAMPLER_KEPT])
        return "a group is counted as kept that is in no batch, or one of a batch is not";
    uint64_t dropped = 0;
    for (unsigned i = SAMPLER_KEPT + 1; i < SAMPLER_VERDICTS; i++)
        dropped += sampler->row.since[i];
    return dropped == sampler->counts[SAMPLED_DROPPED] + sampler->row.unlisted ? NULL
                                                                               : "the dropped groups are counted wrong";
}

static verdict check_sampler(const struct core *core, const struct sampler *sampler)
{
    if (sampler->stream->sampler != sampler || !sampler->trainer[0])
        return "a sampler is not its stream's, or nobody's";
    if (!list_is_empty(&sampler->noted) || sampler->is_changed)
        return "what was noted of a sampler was not settled";
    if ((sampler->row.batch > 0) != (sampler->answer != NULL))
        return "a batch has no answer, or there is one of none";
    if (sampler->is_asked && !sampler->row.is_closing && sampler->counts[SAMPLED_READY] >= sampler->row.rule.groups)
        return "a batch is asked for and full, and was not made";
    if (!sampler->row.is_closing && sampler->counts[SAMPLED_HELD] &&
        sampler->counts[SAMPLED_LIVE] < sampler_wanted(sampler))
        return "groups are held that are wanted";
    if (sampler->counts[SAMPLED_DROPPED] > SAMPLER_LISTED_MAX)
        return "a sampler keeps more dropped groups than it may name";
    for (unsigned state = 0; state < SAMPLED_STATES; state++) {
        verdict bad = check_state(sampler, state);
        if (bad)
            return bad;
    }
    if (!heap_is_sound(&sampler->needed) || !heap_is_sound(&core->sampler_waits))
        return "the order of what samplers need, or wait for, is broken";
    return check_sum(sampler);
}

const char *check_samplers(const struct core *core)
{
    size_t count = 0;
    const struct sampler *sampler;
    LIST_EACH(sampler, &core->samplers, link) {
        verdict bad = check_sampler(core, sampler);
        if (bad)
            return bad;
        count++;
    }
    return count == core->sampler_count ? NULL : "the samplers are counted wrong";
}
