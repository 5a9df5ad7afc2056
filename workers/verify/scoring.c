/* scoring.c - sampled tokens, scored by the engine now, beside what was recorded when they were sampled. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
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

/* What was recorded against what is scored, and that against the same scored again. */
static void compare(const struct record_trace *trace, const uint8_t *wanted, const float *scored,
                    const float *again, struct findings *ret)
{
    for (size_t i = 0; i < trace->token_count; i++) {
        if (!wanted[i])
            continue;
        tally_add(&ret->differences, trace->logprobs[i], scored[i]);
        if (again)
            tally_add(&ret->again, scored[i], again[i]);
    }
}

static int score(struct verify_engine *engine, const struct record_trace *trace, const uint8_t *wanted,
                 float *ret, uint64_t *done, struct fail *fail)
{
    size_t count = trace->token_count; /* what follows the last one need not fit the context */
    while (count > 0 && !wanted[count - 1])
        count--;
    struct engine_scoring scoring = {.ids = trace->token_ids,
                                     .count = count,
                                     .wanted = wanted,
                                     .logprobs = ret,
                                     .done = done};
    return engine_score(engine->engine, &scoring, fail);
}

static int score_trace(struct verify_engine *engine, const struct record_trace *trace,
                       const uint8_t *wanted, bool once, uint64_t *done, struct findings *ret,
                       struct fail *fail)
{
    AUTO_FREE float *scored = calloc(trace->token_count, sizeof(*scored));
    AUTO_FREE float *again = calloc(trace->token_count, sizeof(*again));
    if (!scored || !again)
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = score(engine, trace, wanted, scored, done, fail);
    if (error == 0 && !once)
        error = score(engine, trace, wanted, again, done, fail);
    if (error == 0)
        compare(trace, wanted, scored, once ? NULL : again, ret);
    return error;
}

/* Ends what is told of one trace: it counts as unscored. Negative where the engine is at fault. */
static int pass_over(const struct given *given, size_t trace, uint64_t tokens, int error,
                     const struct fail *why, struct findings *ret, struct fail *fail)
{
    findings_note(ret, &ret->unscored, tokens, "%s, trace %zu cannot be scored: %s", given->rollout,
                  trace, why->text);
    return error == -E2BIG || error == -EINVAL ? 0 : fail_set(fail, error, "%s", why->text);
}

int scoring_run(struct verify_engine *engine, const struct given *given,
                const struct verify_options *options, uint64_t *done, struct findings *ret,
                struct fail *fail)
{
    int error = 0;
    for (size_t i = 0; i < given->record.trace_count && error == 0; i++) {
        const struct record_trace *trace = &given->record.traces[i];
        AUTO_FREE uint8_t *wanted = calloc(trace->token_count + 1, 1);
        if (!wanted)
            return fail_set(fail, -ENOMEM, "out of memory");
        uint64_t tokens = choose(trace, options->tokens, wanted);
        struct fail why = {0};
        if (tokens == 0)
            continue;
        int code = checks_are_ours(engine, given, i, ret)
                       ? score_trace(engine, trace, wanted, options->once, done, ret, &why)
                       : fail_set(&why, -EINVAL, "it is of another model");
        if (code < 0)
            error = pass_over(given, i, tokens, code, &why, ret, fail);
    }
    return error;
}
