/*
 * engines.h - the engine that bench_engines calls, and the worker that calls it. The engine answers every call after
 * the same time, with a document of the same length, or a stream of as many tokens, in the form of the route's dialect.
 */
#ifndef SLUICE_BENCH_ENGINES_H
#define SLUICE_BENCH_ENGINES_H

#include <sys/types.h>

#include "workers/engines/dialects/dialects.h"
#include "workers/engines/engine.h"
#include "workers/engines/server/engine_state.h"

enum { PROMPT = 4000, END_ID = 2, ROUTES = 4, CONNECTIONS_MAX = 8192 };

extern const struct route {
    const char *name, *path;
    const struct dialect *dialect;
    bool has_generate;
} routes[ROUTES];

uint32_t id_at(size_t i);    /* of the prompt and of what is sampled */
double logprob_at(size_t i); /* of what is sampled */

struct engine_kind {
    size_t tokens;       /* that it samples for each call */
    int answer_after_ms; /* or the first event */
    size_t interval;     /* tokens an event, a millisecond apart; 0: no streams */
};
/* Of the last call that sampled; written by the engine. */
struct engine_times {
    _Atomic int64_t ended_us; /* its last token is there: what tells it begins to be sent */
    _Atomic int64_t next_us;  /* of the next request, whatever it asks; 0: none yet */
};

/* Says where it listens; stop_engine ends it. `ret_times` may be NULL. */
pid_t start_engine(const struct engine_kind *kind, char *url, size_t size, const struct engine_times **ret_times);
void stop_engine(pid_t pid);

/* ---- the worker ---- */

extern struct loop *bench_loop;
extern struct tokens bench_prompt;
extern const struct task_sampling bench_sampling;

void open_worker(long connections);
struct engine *open_engine(const char *url, const struct route *route);
/* In a fiber: who it is, which is asked again at each call. */
void know_engine(void *arg);
/* One fiber to its end. */
void run_fiber(void (*run)(void *arg), void *arg);
double cpu_ms(void);
double median(double *values, size_t count);

/* What streams cost, and how soon a turn is in hand (streams.c). */
void measure_streams(size_t count, const char *only);

_Noreturn void give_up(const char *what, const char *why);

#endif
