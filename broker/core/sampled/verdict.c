/* What a group is found to be. No state is changed here. */
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

uint64_t sampled_age(const struct core *core, const struct sampled *sampled)
{
    const uint64_t oldest = sampled->oldest_version;
    return oldest && oldest < core->versions ? core->versions - oldest : 0;
}

bool sampled_is_stale(const struct core *core, const struct sampled *sampled)
{
    const struct sampler_rule *rule = &sampled->sampler->rule;
    return rule->has_staleness && sampled_age(core, sampled) > rule->staleness;
}

static bool is_uniform(const struct sampled *sampled) { return !(sampled->least < sampled->most); }

enum sampler_count sampled_judge(const struct core *core, const struct sampled *sampled)
{
    const uint32_t needed = sampled->samples < 2 ? sampled->samples : 2;
    if (sampled->scored < needed)
        return sampled->cancelled ? SAMPLER_CANCELLED : SAMPLER_NO_REWARD;
    if (sampled->is_forgotten)
        return SAMPLER_FORGOTTEN;
    if (!sampled->sampler->rule.keeps_uniform && is_uniform(sampled))
        return sampled->most == 0 ? SAMPLER_UNIFORM_0 : sampled->most == 1 ? SAMPLER_UNIFORM_1 : SAMPLER_UNIFORM_OTHER;
    return sampled_is_stale(core, sampled) ? SAMPLER_STALE : SAMPLER_KEPT;
}

bool sampled_seems_uniform(const struct sampled *sampled)
{
    const uint64_t early = sampled->sampler->rule.early;
    return early && sampled->scored >= early && sampled->ended < sampled->samples && is_uniform(sampled);
}

double sampled_mean(const struct sampled *sampled) { return sampled->scored ? sampled->sum / sampled->scored : 0; }

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
