/* report.h - what was found, of one trajectory or of all. */
#ifndef SLUICE_WORKERS_VERIFY_REPORT_H
#define SLUICE_WORKERS_VERIFY_REPORT_H

#include "workers/verify/histogram.h"
#include "workers/verify/verify.h"

/* Of one trajectory, or of all. X(name, what one of them is): each is an error. */
#define VERIFY_ERRORS(X)                                                                                               \
    X(damaged, "a line that is not a trajectory")                                                                      \
    X(not_in_mask, "a token of the assistant's that the mask leaves out")                                              \
    X(not_sampled, "a token in the mask that was not sampled: the template's, or after the turn's end")                \
    X(breaks, "a trace that starts without a reason")                                                                  \
    X(counts, "a number that is not what it counts: offsets, prompt and cached tokens, finish")                        \
    X(values, "a log-probability that is none, or stands where nothing was sampled")                                   \
    X(altered, "a turn of the template's, the task's or a tool's whose ids are not what its messages make")            \
    X(off, "a sampled token whose log-probability is further from the recorded one than from itself")                  \
    X(drifted, "a trace whose mean difference is")                                                                     \
    X(strangers, "a trace of another template, tokenizer or kind of log-probability than the engine's")

/* The sampled token that is furthest off. */
struct worst {
    char rollout[300];
    size_t trace, at;
    uint32_t id;
    double recorded, scored; /* scored: of all its scores the nearest */
};

struct report {
    uint64_t trajectories, traces, turns, sampled; /* turns: of the assistant */
    uint64_t new_traces;                           /* beyond each first, with a reason */
    uint64_t unscored;                             /* tokens */
    uint64_t prompt_tokens, cached_tokens;
#define X(name, doc) uint64_t name;
    VERIFY_ERRORS(X)
#undef X
    struct histogram differences; /* recorded and scored */
    struct histogram again;       /* scored and scored again */
    struct worst worst;           /* rollout "": none was scored */
    char first[640];              /* the first error, or why it is not scored, in words */
};
double worst_difference(const struct worst *worst); /* -1: none was scored */
void report_join(struct report *all, const struct report *more);
uint64_t report_errors(const struct report *report);
/* Counts one of `error`, a member of *report; the first is told in words. */
void report_note(struct report *report, uint64_t *error, uint64_t count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
enum verify_status report_judge(const struct report *report, double tolerance);

#endif
