#include <math.h>
#include <stdarg.h>

#include "workers/verify/verify.h"

static size_t bar_of(double difference)
{
    double decades = log10(difference) - TALLY_FIRST_DECADE; /* of 0: minus infinity */
    if (!(decades >= 0))
        return 0;
    size_t bar = 1 + (size_t)(decades * TALLY_BARS_A_DECADE);
    return bar < TALLY_BARS ? bar : TALLY_BARS - 1;
}

void tally_add(struct tally *tally, double one, double other)
{
    double difference = fabs(one - other);
    tally->count++;
    tally->sum += difference;
    tally->max = fmax(tally->max, difference);
    tally->bars[bar_of(difference)]++;
}

void tally_join(struct tally *tally, const struct tally *more)
{
    tally->count += more->count;
    tally->sum += more->sum;
    tally->max = fmax(tally->max, more->max);
    for (size_t i = 0; i < TALLY_BARS; i++)
        tally->bars[i] += more->bars[i];
}

double tally_mean(const struct tally *tally)
{
    return tally->count ? tally->sum / (double)tally->count : 0;
}

double worst_difference(const struct worst *worst)
{
    return worst->rollout[0] ? fabs(worst->recorded - worst->scored) : -1;
}

void findings_join(struct findings *all, const struct findings *more)
{
    if (worst_difference(&more->worst) > worst_difference(&all->worst))
        all->worst = more->worst;
    all->trajectories += more->trajectories;
    all->traces += more->traces;
    all->turns += more->turns;
    all->sampled += more->sampled;
    all->new_traces += more->new_traces;
    all->unscored += more->unscored;
    all->prompt_tokens += more->prompt_tokens;
    all->cached_tokens += more->cached_tokens;
#define X(name, doc) all->name += more->name;
    VERIFY_ERRORS(X)
#undef X
    tally_join(&all->differences, &more->differences);
    tally_join(&all->again, &more->again);
    if (!all->first[0])
        memcpy(all->first, more->first, sizeof(all->first));
}

uint64_t findings_errors(const struct findings *findings)
{
    uint64_t errors = 0;
#define X(name, doc) errors += findings->name;
    VERIFY_ERRORS(X)
#undef X
    return errors;
}

void findings_note(struct findings *findings, uint64_t *error, uint64_t count, const char *format, ...)
{
    if (count == 0)
        return;
    *error += count;
    if (findings->first[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(findings->first, sizeof(findings->first), format, args);
    va_end(args);
}

enum verify_status findings_judge(const struct findings *findings, double tolerance)
{
    if (findings_errors(findings) || tally_mean(&findings->differences) > tolerance)
        return VERIFY_WRONG;
    return findings->unscored || findings->trajectories == 0 ? VERIFY_UNSCORED : VERIFY_GOOD;
}
