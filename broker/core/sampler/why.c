/* The watchdog: why a batch is not there, and what to do about it. */
#include "broker/core/sampler/sampling.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

#include <stdio.h>

enum { HOPELESS_LEAST = 16 }; /* verdicts of which none was `kept`, before that is said */

static bool needs_engine(const struct sampler *sampler)
{
    const struct list *live = &sampler->groups[SAMPLED_LIVE];
    const struct sampled *oldest = list_is_empty(live) ? NULL : container_of(live->next, struct sampled, link);
    return oldest && oldest->group && oldest->group->work && oldest->group->work->needs_engine;
}

/* What the last verdicts were, the most frequent ones by name. */
static void say_hopeless(const struct sampler *sampler, char *ret, size_t size)
{
    int len = snprintf(ret, size, "no group is admissible: of the last %llu",
                       (unsigned long long)sampler_recent(sampler));
    const char *glue = ", ";
    for (unsigned i = SAMPLER_KEPT + 1; i < SAMPLER_VERDICTS; i++)
        if (sampler->row.recent[i] && len > 0 && (size_t)len < size) {
            len += snprintf(ret + len, size - (size_t)len, "%s%llu are %s", glue,
                            (unsigned long long)sampler->row.recent[i], sampler_count_word((enum sampler_count)i));
            glue = " and ";
        }
    const bool is_hard = sampler->row.recent[SAMPLER_UNIFORM_0] >= sampler->row.recent[SAMPLER_UNIFORM_1];
    if (len > 0 && (size_t)len < size)
        snprintf(ret + len, size - (size_t)len, "; submit %s tasks, or look at their rewards",
                 is_hard ? "easier" : "harder");
}

void sampler_why(const struct core *core, const struct sampler *sampler, char ret[SAMPLER_WHY_MAX + 1])
{
    const size_t size = SAMPLER_WHY_MAX + 1;
    const unsigned long long ready = sampler->counts[SAMPLED_READY], live = sampler->counts[SAMPLED_LIVE];
    const unsigned long long held = sampler->counts[SAMPLED_HELD], wanted = sampler_wanted(sampler);
    const unsigned long long groups = sampler->row.rule.groups, stale = sampler->row.since[SAMPLER_STALE];
    if (sampler->row.is_closing)
        snprintf(ret, size, "the sampler is being closed");
    else if (ready >= groups)
        snprintf(ret, size, "%llu of %llu groups are ready: ask for batch %llu", ready, groups,
                 (unsigned long long)sampler->row.batch + 1);
    else if (needs_engine(sampler) && !core->engines_registered)
        snprintf(ret, size, "no engine is registered: sluice engine add URL");
    else if (sampler_recent(sampler) >= HOPELESS_LEAST && !sampler->row.recent[SAMPLER_KEPT])
        say_hopeless(sampler, ret, size);
    else if (!held && live < wanted)
        snprintf(ret, size,
                 "the pool is empty: %llu of %llu groups are ready, %llu are at work, %llu would be; submit more tasks",
                 ready, groups, live, wanted);
    else if (stale && !ready)
        snprintf(ret, size,
                 "%llu groups were dropped as stale since the last batch: staleness is %llu, the newest version %llu; "
                 "allow more, keep fewer batches ahead, or set versions less often",
                 stale, (unsigned long long)sampler->row.rule.staleness, (unsigned long long)core->versions);
    else
        snprintf(ret, size, "%llu of %llu groups are ready, %llu are at work, %llu are held", ready, groups, live,
                 held);
}
