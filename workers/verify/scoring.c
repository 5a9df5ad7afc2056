/* scoring.c - sampled tokens, scored by the engine now, beside what was recorded when they were sampled. */
#include "workers/verify/scoring.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/verify/checks.h"
#include "workers/verify/histogram.h"
#include "workers/verify/remaking.h"
#include "workers/verify/report.h"
#include "workers/verify/sample.h"
#include "workers/verify/verify.h"

/* The sampled tokens, or `most` of them, spread evenly; how many. Before the first token there is nothing. */
static uint64_t choose(const struct record_trace *trace, uint64_t most, uint8_t *ret)
{
    uint64_t all = 0, seen = 0, chosen = 0;
    for (size_t i = 1; i < trace->token_count; i++)
        all += trace->mask[i];
    if (most == 0 || most > all)
        most = all;
    for (size_t i = 1; i < trace->token_count; i++) {
        if (!trace->mask[i])
            continue;
        ret[i] = (seen + 1) * most / all > seen * most / all;
        chosen += ret[i];
        seen++;
    }
    return chosen;
}

/* A trace's scores, once and again. */
struct scores {
    struct verify_engine *engine;
    const struct record_trace *trace;
    const struct verify_options *options;
    const uint8_t *wanted;
    float *first, *again; /* again: not with --once */
    uint64_t *done;
};

static int score(const struct scores *scores, const uint8_t *wanted, float *ret, struct fail *fail)
{
    struct engine_scoring scoring = {.ids = scores->trace->token_ids,
                                     .count = scores->trace->token_count,
                                     .wanted = wanted,
                                     .scores = {.logprobs = ret},
                                     .done = scores->done};
    return engine_score(scores->engine->engine, &scoring, fail);
}

/* ---- the judgement --------------------------------------------------------------------------- */

/*
 * What is beyond the engine's own noise is no noise: the bounds are what was asked for, or, where the
 * engine is further from itself than that in this trace, NOISE_FACTOR times as far.
 */
enum { NOISE_FACTOR = 3, MORE_SCORES = 3 };

static double farther(double one, double other) { return one > other ? one : other; }

/* The nearest of its scores; more of them where the first ones are far off. */
static int nearest_score(const struct scores *scores, size_t at, double most, double *ret, struct fail *fail)
{
    const double recorded = scores->trace->logprobs[at];
    double nearest = scores->first[at];
    AUTO_FREE uint8_t *wanted = calloc(scores->trace->token_count, 1);
    AUTO_FREE float *more = calloc(scores->trace->token_count, sizeof(*more));
    if (!wanted || !more)
        return fail_memory(fail);
    if (scores->again && fabs(scores->again[at] - recorded) < fabs(nearest - recorded))
        nearest = scores->again[at];
    wanted[at] = 1;
    for (int i = 0; i < MORE_SCORES && fabs(nearest - recorded) > most && !scores->options->once; i++) {
        int error = score(scores, wanted, more, fail);
        if (error < 0)
            return error;
        if (fabs(more[at] - recorded) < fabs(nearest - recorded))
            nearest = more[at];
    }
    *ret = nearest;
    return 0;
}

static void note_worst(struct report *ret, const struct worst *one)
{
    if (worst_difference(one) > worst_difference(&ret->worst))
        ret->worst = *one;
}

static int judge_token(const struct scores *scores, const struct sample *given, size_t trace, size_t at, double most,
                       struct report *ret, struct fail *fail)
{
    const uint32_t id = scores->trace->token_ids[at];
    const double recorded = scores->trace->logprobs[at], first = scores->first[at];
    double nearest = first;
    int error = fabs(first - recorded) > most ? nearest_score(scores, at, most, &nearest, fail) : 0;
    if (error < 0)
        return error;
    struct worst one = {.trace = trace, .at = at, .id = id, .recorded = recorded, .scored = nearest};
    memcpy(one.rollout, given->rollout, sizeof(one.rollout));
    note_worst(ret, &one);
    report_note(ret, &ret->off, fabs(nearest - recorded) > most,
                "%s, trace %zu, token %zu (id %u): recorded %.4f, scored %.4f (up to %.3g apart is good)",
                given->rollout, trace, at, id, recorded, nearest, most);
    return 0;
}

/* Every token, and their mean: of few tokens one may be as far off as one alone may. */
static int judge(const struct scores *scores, const struct sample *given, size_t trace, struct report *ret,
                 struct fail *fail)
{
    const struct record_trace *record = scores->trace;
    struct histogram differences = {0}, again = {0};
    for (size_t i = 0; i < record->token_count; i++) {
        if (!scores->wanted[i])
            continue;
        histogram_add(&differences, record->logprobs[i], scores->first[i]);
        if (scores->again)
            histogram_add(&again, scores->first[i], scores->again[i]);
    }
    const double token = farther(scores->options->token_tolerance, NOISE_FACTOR * again.max);
    const double mean = farther(scores->options->tolerance, NOISE_FACTOR * histogram_mean(&again)) +
                        scores->options->token_tolerance / (double)differences.count;
    histogram_join(&ret->differences, &differences);
    histogram_join(&ret->again, &again);
    int error = 0;
    for (size_t i = 0; i < record->token_count && error == 0; i++)
        if (scores->wanted[i])
            error = judge_token(scores, given, trace, i, token, ret, fail);
    report_note(ret, &ret->drifted, error == 0 && histogram_mean(&differences) > mean,
                "%s, trace %zu: its %llu tokens are %.3g nats off on average (up to %.3g is good)", given->rollout,
                trace, (unsigned long long)differences.count, histogram_mean(&differences), mean);
    return error;
}

static int score_trace(struct verify_engine *engine, const struct sample *given, size_t trace, const uint8_t *wanted,
                       const struct verify_options *options, uint64_t *done, struct report *ret, struct fail *fail)
{
    const struct record_trace *record = &given->record.traces[trace];
    AUTO_FREE float *first = calloc(record->token_count, sizeof(*first));
    AUTO_FREE float *again = calloc(record->token_count, sizeof(*again));
    if (!first || !again)
        return fail_memory(fail);
    const struct scores scores = {.engine = engine,
                                  .trace = record,
                                  .options = options,
                                  .wanted = wanted,
                                  .first = first,
                                  .again = options->once ? NULL : again,
                                  .done = done};
    int error = score(&scores, wanted, first, fail);
    if (error == 0 && !options->once)
        error = score(&scores, wanted, again, fail);
    return error < 0 ? error : judge(&scores, given, trace, ret, fail);
}

/* What was given, and what was sampled after it; where all of it is masked, `wanted` is NULL. */
static int check_trace(struct verify_engine *engine, const struct sample *given, size_t trace, const uint8_t *wanted,
                       const struct verify_options *options, uint64_t *done, struct report *ret, struct fail *fail)
{
    if (!checks_are_ours(engine, given, trace, ret))
        return fail_set(fail, -EINVAL, "it is of another model");
    int error = remaking_run(engine, given, trace, ret, fail);
    return error < 0 || !wanted ? error : score_trace(engine, given, trace, wanted, options, done, ret, fail);
}

/* Ends what is told of one trace: it counts as unscored. Negative where the engine is at fault. */
static int pass_over(const struct sample *given, size_t trace, uint64_t tokens, int error, const struct fail *why,
                     struct report *ret, struct fail *fail)
{
    report_note(ret, &ret->unscored, tokens, "%s, trace %zu cannot be scored: %s", given->rollout, trace, why->text);
    return error == -E2BIG || error == -EINVAL ? 0 : fail_set(fail, error, "%s", why->text);
}

int scoring_run(struct verify_engine *engine, const struct sample *given, const struct verify_options *options,
                uint64_t *done, struct report *ret, struct fail *fail)
{
    int error = 0;
    for (size_t i = 0; i < given->record.trace_count && error == 0; i++) {
        const struct record_trace *trace = &given->record.traces[i];
        AUTO_FREE uint8_t *wanted = calloc(trace->token_count + 1, 1);
        if (!wanted)
            return fail_memory(fail);
        uint64_t tokens = choose(trace, options->tokens, wanted);
        struct fail why = {0};
        if (tokens == 0 && (!trace->label[0] || trace->token_count == 0))
            continue;
        int code = check_trace(engine, given, i, tokens > 0 ? wanted : NULL, options, done, ret, &why);
        if (code < 0)
            error = pass_over(given, i, tokens, code, &why, ret, fail);
    }
    return error;
}
