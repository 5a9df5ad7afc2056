#include "broker/core/metrics/named.h"
#include "broker/core/state/state.h"

enum { IDLE_MS = 24 * 60 * 60 * 1000 };

static struct named *find(struct named_set *set, struct slice name)
{
    for (size_t i = 0; i < set->count; i++)
        if (slice_is(name, set->each[i].name))
            return &set->each[i];
    return NULL;
}

/* A place for one more, empty; NULL: all are in use. */
static struct named *take_place(const struct core *core, struct named_set *set)
{
    struct named *oldest = NULL;
    if (set->count < METRIC_NAMES_MAX)
        return &set->each[set->count++];
    for (size_t i = 0; i < set->count; i++)
        if (!oldest || set->each[i].seen_ms < oldest->seen_ms)
            oldest = &set->each[i];
    return core->now_ms - oldest->seen_ms > IDLE_MS ? oldest : NULL;
}

/* NULL: it is one of the others. */
static struct named *get(const struct core *core, struct named_set *set, struct slice name)
{
    const bool fits = name.len > 0 && name.len <= METRIC_NAME_MAX && !slice_is(name, METRIC_OTHER);
    struct named *named = fits ? find(set, name) : NULL;
    if (!named && fits && (named = take_place(core, set))) {
        *named = (struct named){.seen_ms = core->now_ms};
        memcpy(named->name, name.data, name.len);
    }
    if (named)
        named->seen_ms = core->now_ms;
    return named;
}

void named_join(struct core *core, struct named_set *set, struct slice name, const struct observed *more)
{
    struct named *named = get(core, set, name);
    observed_join(named ? &named->observed : &set->other, more);
    set->has_other |= !named;
}

void named_see(struct core *core, struct named_set *set, struct slice name) { get(core, set, name); }
