/* print.c - findings in words, and as JSON. */
#include "workers/verify/print.h"

#include "common/base/sanitize.h"
#include "workers/verify/verify.h"

typedef unsigned long long ull;

static const struct {
    const char *name, *doc;
    size_t offset;
} errors[] = {
#define X(name, doc) {#name, doc, offsetof(struct report, name)},
    VERIFY_ERRORS(X)
#undef X
};
enum { ERRORS = sizeof(errors) / sizeof(*errors) };

static uint64_t error_count(const struct report *report, size_t which)
{
    return *(const uint64_t *)((const char *)report + errors[which].offset);
}

static const char *verdict_of(enum verify_status status)
{
    return status == VERIFY_GOOD ? "good" : status == VERIFY_WRONG ? "wrong" : "not everything was scored";
}

static double percent(uint64_t part, uint64_t whole) { return whole ? 100 * (double)part / (double)whole : 0; }

static void print_tally(const char *what, const struct histogram *tally, FILE *out)
{
    fprintf(out, "  %-34s mean %.3g nats, greatest %.3g, of %llu tokens\n", what, histogram_mean(tally), tally->max,
            (ull)tally->count);
}

void verify_print_wrong(const char *rollout, const struct report *report, FILE *out)
{
    if (report_errors(report) > 0)
        sanitize_print(out, "wrong in %llu places: %s: %s\n", (ull)report_errors(report), rollout, report->first);
}

void verify_print(const struct report *all, const struct verify_options *options, double seconds, FILE *out)
{
    fprintf(out,
            "%llu trajectories: %llu traces (%llu begun anew, with a reason), %llu sampled turns, "
            "%llu sampled tokens\n",
            (ull)all->trajectories, (ull)all->traces, (ull)all->new_traces, (ull)all->turns, (ull)all->sampled);
    fprintf(out, "%llu prompt tokens, %.1f %% of them from the engine's cache\n", (ull)all->prompt_tokens,
            percent(all->cached_tokens, all->prompt_tokens));
    fprintf(out, "differences of log-probabilities, absolute:\n");
    print_tally("recorded and scored now", &all->differences, out);
    if (!options->once)
        print_tally("scored now and scored again", &all->again, out);
    if (all->worst.rollout[0])
        sanitize_print(out, "  the furthest: %s, trace %zu, token %zu (id %u): recorded %.4f, scored %.4f\n",
                       all->worst.rollout, all->worst.trace, all->worst.at, all->worst.id, all->worst.recorded,
                       all->worst.scored);
    fprintf(out, "errors:\n");
    for (size_t i = 0; i < ERRORS; i++)
        fprintf(out, "  %-34s %llu\n", errors[i].name, (ull)error_count(all, i));
    if (all->unscored)
        fprintf(out, "%llu tokens could not be scored\n", (ull)all->unscored);
    if (all->first[0])
        sanitize_print(out, "the first: %s\n", all->first);
    enum verify_status status = report_judge(all, options->tolerance);
    fprintf(out, "%s (a mean difference up to %g nats is), in %.1f s\n", verdict_of(status), options->tolerance,
            seconds);
}

static void json_tally(const char *name, const struct histogram *tally, FILE *out)
{
    fprintf(out, ", \"%s\": {\"tokens\": %llu, \"mean\": %.9g, \"max\": %.9g}", name, (ull)tally->count,
            histogram_mean(tally), tally->max);
}

/* What steers a terminal has no place in JSON either: the words are our own but for names. */
static void json_words(const char *text, FILE *out)
{
    putc('"', out);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    putc('"', out);
}

static void json_worst(const struct worst *worst, FILE *out)
{
    fputs(", \"worst\": {\"rollout\": ", out);
    json_words(worst->rollout, out);
    fprintf(out, ", \"trace\": %zu, \"token\": %zu, \"id\": %u, \"recorded\": %.9g, \"scored\": %.9g}", worst->trace,
            worst->at, worst->id, worst->recorded, worst->scored);
}

void verify_print_json(const char *rollout, const struct report *report, const struct verify_options *options,
                       FILE *out)
{
    if (rollout) {
        fputs("{\"rollout\": ", out);
        json_words(rollout, out);
    } else {
        fprintf(out, "{\"verdict\": \"%s\", \"tolerance\": %g, \"trajectories\": %llu",
                verdict_of(report_judge(report, options->tolerance)), options->tolerance, (ull)report->trajectories);
    }
    fprintf(out,
            ", \"traces\": %llu, \"new_traces\": %llu, \"turns\": %llu, \"sampled\": %llu, "
            "\"unscored\": %llu",
            (ull)report->traces, (ull)report->new_traces, (ull)report->turns, (ull)report->sampled,
            (ull)report->unscored);
    fprintf(out, ", \"prompt_tokens\": %llu, \"cached_tokens\": %llu", (ull)report->prompt_tokens,
            (ull)report->cached_tokens);
    json_tally("recorded", &report->differences, out);
    if (!options->once)
        json_tally("again", &report->again, out);
    if (report->worst.rollout[0])
        json_worst(&report->worst, out);
    fputs(", \"errors\": {", out);
    for (size_t i = 0; i < ERRORS; i++)
        fprintf(out, "%s\"%s\": %llu", i ? ", " : "", errors[i].name, (ull)error_count(report, i));
    fputs("}, \"first\": ", out);
    json_words(report->first, out);
    fputs("}\n", out);
    fflush(out);
}
