/* histogram.h - how far log-probabilities differ, counted. */
#ifndef SLUICE_WORKERS_VERIFY_HISTOGRAM_H
#define SLUICE_WORKERS_VERIFY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Bars are a quarter of a decade wide, from 1e-7 nats on; the first holds what is smaller. */
enum { TALLY_BARS_A_DECADE = 4, TALLY_FIRST_DECADE = -7, TALLY_BARS = 1 + 8 * TALLY_BARS_A_DECADE };

struct histogram {
    uint64_t count, bars[TALLY_BARS];
    double sum, max; /* of absolute differences */
};
void histogram_add(struct histogram *tally, double one, double other);
void histogram_join(struct histogram *tally, const struct histogram *more);
double histogram_mean(const struct histogram *tally); /* 0 of none */

#endif
