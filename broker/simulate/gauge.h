/*
 * gauge.h - what is measured over made-up time: a level and its mean, and a spread of waits.
 */
#ifndef SLUICE_BROKER_SIMULATE_GAUGE_H
#define SLUICE_BROKER_SIMULATE_GAUGE_H

#include <math.h>
#include <stdint.h>

/* How much there is of something, and that times the seconds it lasted. */
struct level {
    double now, sum, changed_s;
};

static inline double level_sum(const struct level *level, double now_s)
{
    return level->sum + level->now * (now_s - level->changed_s);
}

static inline void level_add(struct level *level, double more, double now_s)
{
    level->sum = level_sum(level, now_s);
    level->now += more;
    level->changed_s = now_s;
}

/* Seconds in classes of 1/32 octave from a millisecond on: a percentile is right to 2 %. */
enum { SPREAD_STEPS = 32, SPREAD_CLASSES = 1 + 44 * SPREAD_STEPS };

struct spread {
    uint64_t count, classes[SPREAD_CLASSES];
};

static inline void spread_add(struct spread *spread, double seconds)
{
    int at = seconds < 0.001 ? 0 : 1 + (int)(SPREAD_STEPS * log2(seconds / 0.001));
    spread->classes[at < SPREAD_CLASSES ? at : SPREAD_CLASSES - 1]++;
    spread->count++;
}

/* The seconds that `share` of all are not above; 0 of none, and of what is below a millisecond. */
static inline double spread_at(const struct spread *spread, double share)
{
    uint64_t below = 0, wanted = (uint64_t)ceil(share * (double)spread->count);
    for (int at = 0; at < SPREAD_CLASSES; at++) {
        below += spread->classes[at];
        if (below >= wanted && below)
            return at ? 0.001 * exp2((at - 0.5) / SPREAD_STEPS) : 0;
    }
    return 0;
}

#endif
