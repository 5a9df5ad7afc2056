/*
 * harness.h - what bench_harness is made of: an engine as vLLM's that is never the bottleneck, clients that
 * speak to it or to proxies of harnesses in front of it, and what these processes tell each other.
 */
#ifndef SLUICE_BENCH_HARNESS_H
#define SLUICE_BENCH_HARNESS_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TURN = 500, PROMPT = 4000, TURNS = 8, CALLS_MAX = 1 << 14 };

/* Memory of all processes. */
struct shared {
    int64_t first_us;            /* when the engine sent the first event of its last stream */
    uint32_t token_us;           /* between two events of a stream */
    atomic_size_t requests;      /* that the engine was asked */
    size_t calls;                /* of the client's that are measured */
    uint32_t call_us[CALLS_MAX]; /* from the request to the end of the answer */
    uint32_t lag_us[CALLS_MAX];  /* from the engine's first event to the client's first text; streams alone */
};
extern struct shared *shared;

_Noreturn void give_up(const char *what, const char *why);

/* A process each; they end with this one. */
pid_t start_engine(char *url, size_t size);
/* A conversation of so many turns by chat with each of the proxies at these ports, one after the other. */
pid_t start_harness(const int *ports, size_t count, size_t turns, bool is_stream);
/* `count` calls of the engine itself, as the worker makes them. */
pid_t start_direct(int port, size_t count, bool is_stream);

#endif
