#include "workers/evaluators/judge/scoring.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(const double *sorted, size_t count) { return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2; }

/* The value that is there most often; of those that are equally often, the lowest. */
static double majority(const double *sorted, size_t count)
{
    double best = sorted[0];
    size_t most = 0;
    for (size_t i = 0; i < count;) {
        size_t same = i;
        while (same < count && sorted[same] <= sorted[i])
            same++;
        if (same - i > most) {
            most = same - i;
            best = sorted[i];
        }
        i = same;
    }
    return best;
}

/* NAN: it does not apply. */
static double combine(const struct task_judge *judge, const struct task_criterion *criterion, const double *values,
                      size_t count)
{
    double given[TASK_JUDGE_SAMPLES_MAX];
    size_t given_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            given[given_count++] = values[i];
    if (2 * given_count < count || given_count == 0)
        return NAN;
    qsort(given, given_count, sizeof(*given), by_value);
    const double value = strcmp(judge->combine, "majority") == 0 ? majority(given, given_count)
                                                                 : median(given, given_count);
    return strcmp(criterion->better, "low") == 0 ? 1 - value : value;
}

static void say_values(struct judge_criteria criteria, const double *values, struct verdict *ret)
{
    char words[1024] = "";
    for (size_t i = 0; i < criteria.count; i++) {
        const size_t len = strlen(words);
        if (isnan(values[i]))
            snprintf(words + len, sizeof(words) - len, "%s%s n/a", i ? ", " : "", criteria.list[i].name);
        else
            snprintf(words + len, sizeof(words) - len, "%s%s %.3g", i ? ", " : "", criteria.list[i].name, values[i]);
    }
    verdict_say(ret, "%s", words);
}

static bool add_parts(struct judge_criteria criteria, const double *values, double weights, struct verdict *ret)
{
    struct refusal no;
    for (size_t i = 0; i < criteria.count; i++)
        if (!isnan(values[i]) &&
            !verdict_add_part(ret, criteria.list[i].name, values[i], criteria.list[i].weight / weights, &no)) {
            verdict_say(ret, "%s", no.text);
            return false;
        }
    return verdict_sum(ret, &no);
}

bool judge_score(const struct task_judge *judge, const struct judge_votes *votes, struct verdict *ret)
{
    const struct judge_criteria criteria = judge_criteria_of(judge);
    double values[TASK_CRITERIA_MAX], weights = 0;
    if (votes->count == 0 || votes->count < votes->unreadable) {
        verdict_say(ret, "%zu of %zu replies could be read", votes->count, votes->count + votes->unreadable);
        return false;
    }
    for (size_t i = 0; i < criteria.count; i++) {
        values[i] = combine(judge, &criteria.list[i], votes->values[i], votes->count);
        weights += isnan(values[i]) ? 0 : criteria.list[i].weight;
    }
    if (weights <= 0) {
        verdict_say(ret, "no criterion with a weight applies");
        return false;
    }
    if (!add_parts(criteria, values, weights, ret))
        return false;
    say_values(criteria, values, ret);
    return true;
}
