/*
 * engines.h - the engine that bench_engines calls. It answers every call after the same time, with
 * a document of the same length, in the form of the route's dialect.
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

/* Answers `tokens` sampled ones after so long. Says where it listens; stop_engine ends it. */
pid_t start_engine(size_t tokens, int answer_after_ms, char *url, size_t size);
void stop_engine(pid_t pid);

_Noreturn void give_up(const char *what, const char *why);

#endif
