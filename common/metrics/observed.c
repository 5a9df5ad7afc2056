#include "common/metrics/observed.h"

const struct observed_bounds observed_seconds = {
    .count = 15, .at = {0.01, 0.025, 0.06, 0.15, 0.4, 1, 2.5, 6, 15, 40, 100, 250, 600, 1500, 3600}};

size_t observed_class(const struct observed_bounds *bounds, double value)
{
    size_t at = 0;
    while (at < bounds->count && value > bounds->at[at])
        at++;
    return at;
}

void observed_add(struct observed *observed, const struct observed_bounds *bounds, double value)
{
    observed->counts[observed_class(bounds, value)]++;
    observed->sum += value;
}

void observed_join(struct observed *observed, const struct observed *other)
{
    for (size_t i = 0; i < OBSERVED_CLASSES_MAX; i++)
        observed->counts[i] += other->counts[i];
    observed->sum += other->sum;
}

uint64_t observed_count(const struct observed *observed)
{
    uint64_t count = 0;
    for (size_t i = 0; i < OBSERVED_CLASSES_MAX; i++)
        count += observed->counts[i];
    return count;
}
