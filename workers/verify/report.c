#include "workers/verify/report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

double worst_difference(const struct worst *worst)
{
    return worst->rollout[0] ? fabs(worst->recorded - worst->scored) : -1;
}

void report_join(struct report *all, const struct report *more)
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
    histogram_join(&all->differences, &more->differences);
    histogram_join(&all->again, &more->again);
    if (!all->first[0])
        memcpy(all->first, more->first, sizeof(all->first));
}

uint64_t report_errors(const struct report *report)
{
    uint64_t errors = 0;
#define X(name, doc) errors += report->name;
    VERIFY_ERRORS(X)
#undef X
    return errors;
}

void report_note(struct report *report, uint64_t *error, uint64_t count, const char *format, ...)
{
    if (count == 0)
        return;
    *error += count;
    if (report->first[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(report->first, sizeof(report->first), format, args);
    va_end(args);
}

enum verify_status report_judge(const struct report *report, double tolerance)
{
    if (report_errors(report) || histogram_mean(&report->differences) > tolerance)
        return VERIFY_WRONG;
    return report->unscored || report->trajectories == 0 ? VERIFY_UNSCORED : VERIFY_GOOD;
}
