#include "workers/verify/histogram.h"

#include <math.h>

static size_t bar_of(double difference)
{
    double decades = log10(difference) - TALLY_FIRST_DECADE; /* of 0: minus infinity */
    if (!(decades >= 0))
        return 0;
    size_t bar = 1 + (size_t)(decades * TALLY_BARS_A_DECADE);
    return bar < TALLY_BARS ? bar : TALLY_BARS - 1;
}

void histogram_add(struct histogram *tally, double one, double other)
{
    double difference = fabs(one - other);
    tally->count++;
    tally->sum += difference;
    tally->max = fmax(tally->max, difference);
    tally->bars[bar_of(difference)]++;
}

void histogram_join(struct histogram *tally, const struct histogram *more)
{
    tally->count += more->count;
    tally->sum += more->sum;
    tally->max = fmax(tally->max, more->max);
    for (size_t i = 0; i < TALLY_BARS; i++)
        tally->bars[i] += more->bars[i];
}

double histogram_mean(const struct histogram *tally) { return tally->count ? tally->sum / (double)tally->count : 0; }
