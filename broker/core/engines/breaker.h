/*
 * core/engines/breaker.h - circuit breakers, one for each engine and each image.
 *
 * closed: jobs go there. breaker_faults faults in a row open it: nothing goes there
 * for breaker_first_ms. Then exactly one job tries it. A success closes it; another
 * fault doubles the wait, up to breaker_last_ms; a trial that ends otherwise (its
 * worker was lost, it was cancelled) has said nothing, and the next job tries it.
 * What waits meanwhile is blocked, and let go one by one until a trial is under way.
 *
 * An image's faults are those of init jobs, each group's counted once. Its waiting
 * groups end as `task` when a trial says that the image itself is at fault.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_BREAKER_H
#define SLUICE_BROKER_CORE_ENGINES_BREAKER_H

#include "broker/core/state/engine.h"

struct core;

enum {
    TRIAL_PERIOD_MS = 1000 /* how often another blocked job is let go to be the trial */
};

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRIAL };

/* What a fault did. */
enum breaker_news {
    BREAKER_COUNTED, /* it is still closed */
    BREAKER_BROKE,   /* it has opened */
    BREAKER_LATE,    /* it is open: a dispatch from before tells what is known */
    BREAKER_FAILED   /* its trial failed */
};

enum breaker_state breaker_state(const struct core *core, const struct breaker *breaker);
const char *breaker_state_word(enum breaker_state state);
/* Whether a job may go there now. */
bool breaker_lets(const struct core *core, const struct breaker *breaker);
/* Of the dispatch with that token; `why` in words. */
enum breaker_news breaker_fault(struct core *core, struct breaker *breaker, uint64_t token, struct slice why);
/* It works; true if it was open: what waits is to be let go. */
bool breaker_close(struct core *core, struct breaker *breaker);
/* It is out of use: nothing is known of it any more. */
void breaker_reset(struct core *core, struct breaker *breaker);
/* A job begins, ends there. `breaker` may be NULL. */
void breaker_enter(struct core *core, struct breaker *breaker, const struct job *job);
void breaker_leave(struct core *core, struct breaker *breaker, const struct job *job);
/* Something waits for it: it is to have a trial. */
void breaker_await(struct core *core, struct breaker *breaker);

/* The one this job's dispatch stands for: its engine's or its image's, or NULL. */
struct breaker *job_breaker(struct job *job);

#endif
