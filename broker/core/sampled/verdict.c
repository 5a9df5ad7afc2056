/* What a group is found to be. No state is changed here. */
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

uint64_t sampled_age(const struct core *core, const struct sampled *sampled)
{
    const uint64_t oldest = sampled->row.oldest_version;
    return oldest && oldest < core->versions ? core->versions - oldest : 0;
}

bool sampled_is_stale(const struct core *core, const struct sampled *sampled)
{
    const struct sampler_rule *rule = &sampled->sampler->row.rule;
    return rule->has_staleness && sampled_age(core, sampled) > rule->staleness;
}

static bool is_uniform(const struct sampled *sampled) { return !(sampled->row.least < sampled->row.most); }

enum sampler_count sampled_judge(const struct core *core, const struct sampled *sampled)
{
    const uint32_t needed = sampled->row.samples < 2 ? sampled->row.samples : 2;
    if (sampled->row.scored < needed)
        return sampled->row.cancelled ? SAMPLER_CANCELLED : SAMPLER_NO_REWARD;
    if (sampled->row.is_forgotten)
        return SAMPLER_FORGOTTEN;
    if (!sampled->sampler->row.rule.keeps_uniform && is_uniform(sampled))
        return sampled->row.most == 0   ? SAMPLER_UNIFORM_0
               : sampled->row.most == 1 ? SAMPLER_UNIFORM_1
                                        : SAMPLER_UNIFORM_OTHER;
    return sampled_is_stale(core, sampled) ? SAMPLER_STALE : SAMPLER_KEPT;
}

bool sampled_seems_uniform(const struct sampled *sampled)
{
    const uint64_t early = sampled->sampler->row.rule.early;
    return early && sampled->row.scored >= early && sampled->row.ended < sampled->row.samples && is_uniform(sampled);
}

double sampled_mean(const struct sampled *sampled)
{
    return sampled->row.scored ? sampled->row.sum / sampled->row.scored : 0;
}

const char *sampler_count_word(enum sampler_count count)
{
    static const char *const words[SAMPLER_COUNTS] = {
#define VERDICT(name, word, doc) [SAMPLER_##name] = word,
#define COUNT(name, word, doc) [SAMPLER_##name] = word,
#include "broker/core/state/sampler.def"
#undef VERDICT
#undef COUNT
    };
    return words[count];
}
