/* answers.h - what the engine of bench_engines says to each route, made beforehand. */
#ifndef SLUICE_BENCH_ENGINES_ANSWERS_H
#define SLUICE_BENCH_ENGINES_ANSWERS_H

#include "bench/engines/engines.h"

enum { TEXT_ROUTE = ROUTES, ABOUT_ROUTE, ANSWERS };

/* With its head; sent piece by piece. */
struct answer {
    struct buffer bytes;
    size_t *ends; /* of its pieces */
    size_t count;
};

/* Of `count` sampled tokens; streamed, so many an event, unless `interval` is 0. answers_finish it. */
void answers_make(struct answer answers[ANSWERS], size_t count, size_t interval);
void answers_finish(struct answer answers[ANSWERS]);

#endif
