/*
 * verify.h - `sluice-verify`: are the tokens of trajectories what an engine says they are? Each sampled
 * token is scored anew by the engine, after exactly the ids before it, and compared with the recorded
 * log-probability; what was given is made again; masks, counts and the joints between turns are checked beside that.
 *
 * One thread, one loop; `parallel` fibers (lanes) each take the file's next line until none is left.
 */
#ifndef SLUICE_WORKERS_VERIFY_VERIFY_H
#define SLUICE_WORKERS_VERIFY_VERIFY_H

#include <stdio.h>

#include "common/cmdline/option.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/engines/engine.h"

enum verify_status {
    VERIFY_GOOD = 0,
    VERIFY_WRONG = 1, /* an error was found, or the mean difference is beyond the tolerance */
    VERIFY_USAGE = 2,
    VERIFY_UNSCORED = 3 /* not everything could be scored: no engine, no file, a trace too long */
};

struct verify_options {
#define OPTION OPTION_FIELD
#include "workers/verify/options.def"
#undef OPTION
    const char *path; /* "-": stdin */
};

/* ---- differences (histogram.c) ------------------------------------------------------------- */

/* Bars are a quarter of a decade wide, from 1e-7 nats on; the first holds what is smaller. */
enum { TALLY_BARS_A_DECADE = 4, TALLY_FIRST_DECADE = -7, TALLY_BARS = 1 + 8 * TALLY_BARS_A_DECADE };

struct histogram {
    uint64_t count, bars[TALLY_BARS];
    double sum, max; /* of absolute differences */
};
void histogram_add(struct histogram *tally, double one, double other);
void histogram_join(struct histogram *tally, const struct histogram *more);
double histogram_mean(const struct histogram *tally); /* 0 of none */

/* ---- findings ---------------------------------------------------------------------------- */

/* Of one trajectory, or of all. X(name, what one of them is): each is an error. */
#define VERIFY_ERRORS(X)                                                                                               \
    X(damaged, "a line that is no trajectory")                                                                         \
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

/* ---- reading (sample.c) --------------------------------------------------------------------- */

/* A line of `sluice watch --json` or `sluice submit --out`. Lengths agree; nothing else is sure. */
struct sample {
    char rollout[300];
    struct record record;
};
/* 1 with a trajectory, 0 at the end, -EINVAL for a line that is none (sample_finish after each). */
int sample_next(FILE *file, uint64_t *line, struct sample *ret, struct fail *fail);
void sample_finish(struct sample *given);

/* ---- checks (checks.c) ----------------------------------------------------------------------- */

struct verify_engine { /* what the engine says of itself, and what was learnt of it on the way */
    struct engine *engine;
    struct engine_about about;
    struct tokens ends; /* ids that end a turn */
};
/* Awaits: asks the engine about ids that it has not been asked about. */
int checks_run(struct verify_engine *engine, const struct sample *given, struct report *ret, struct fail *fail);
/* Whether the trace is of this engine's model; else counted. */
bool checks_are_ours(const struct verify_engine *engine, const struct sample *given, size_t trace, struct report *ret);

/* ---- what was given (remaking.c) ------------------------------------------------------------------ */

/* Awaits. Each given turn that is not what the engine makes of the messages is counted as altered. */
int remaking_run(struct verify_engine *engine, const struct sample *given, size_t trace, struct report *ret,
                 struct fail *fail);

/* ---- scoring (scoring.c) ------------------------------------------------------------------------ */

/* Awaits. What cannot be scored is counted as unscored; negative only where nothing more can be. */
int scoring_run(struct verify_engine *engine, const struct sample *given, const struct verify_options *options,
                uint64_t *done, struct report *ret, struct fail *fail);

/* ---- telling (print.c, plot.c) -------------------------------------------------------------------- */

/* A line, where the trajectory has an error: its first. */
void verify_print_wrong(const char *rollout, const struct report *report, FILE *out);
void verify_print(const struct report *all, const struct verify_options *options, double seconds, FILE *out);
/* One line; `rollout` NULL: the totals. */
void verify_print_json(const char *rollout, const struct report *report, const struct verify_options *options,
                       FILE *out);
void verify_plot(const struct report *all, FILE *out);

/* ---- all of it (run.c) ------------------------------------------------------------------------------ */

enum verify_status verify_run(const struct verify_options *options, FILE *out);

#endif
