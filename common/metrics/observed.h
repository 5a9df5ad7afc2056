/*
 * observed.h - how many values fell into which class, and their sum: what Prometheus calls a histogram.
 *
 * Each class but the last has an upper bound, which belongs to it. The classes of observed_seconds are told by number
 * between programs of different versions (schemas/metrics/times.h): they are never changed, nor others put between.
 */
#ifndef SLUICE_COMMON_METRICS_OBSERVED_H
#define SLUICE_COMMON_METRICS_OBSERVED_H

#include <stddef.h>
#include <stdint.h>

enum { OBSERVED_BOUNDS_MAX = 15, OBSERVED_CLASSES_MAX = OBSERVED_BOUNDS_MAX + 1 };

struct observed_bounds {
    size_t count; /* and one class more */
    double at[OBSERVED_BOUNDS_MAX];
};

extern const struct observed_bounds observed_seconds; /* 10 ms to an hour, a factor of about 2.5 apart */

struct observed { /* all zero at first */
    uint64_t counts[OBSERVED_CLASSES_MAX];
    double sum;
};

size_t observed_class(const struct observed_bounds *bounds, double value);
void observed_add(struct observed *observed, const struct observed_bounds *bounds, double value);
/* All of the other's, of the same bounds. */
void observed_join(struct observed *observed, const struct observed *other);
uint64_t observed_count(const struct observed *observed);

#endif
