/*
 * parts.h - what is kept of a server for the broker's sake: what rollouts hold on it (engines.h), what the last
 * probe of it found (engine_probe.h), and which version it serves and whether it may be called (calls.h).
 */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_PARTS_H
#define SLUICE_WORKERS_ENGINES_SERVER_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "schemas/messages/message_max.h"

struct fiber;

struct engine_use {
    uint64_t runs, tokens, calls;
};

struct engine_probe {
    struct fiber *fiber; /* that finds out what it serves; NULL: none */
    bool is_busy;        /* under way */
    bool is_new;         /* not told to the broker yet */
    bool answers;        /* any answer but one of 500 and above: a server is there, and not loading */
    char error[MESSAGE_MAX(engine_load, error) + 1]; /* why not */
    bool has_cache;
    unsigned cache_permille;
    int64_t metrics_ms; /* when to ask for it again; 0: always */
};

enum { ENGINE_VERSION_MAX = 30 };

/* A call in flight; on its fiber's stack. */
struct engine_call {
    LIST_ENTRY(engine_call) links;
    struct fiber *fiber;
    uint64_t aborts;                      /* there had been, when it began */
    char version[ENGINE_VERSION_MAX + 1]; /* then */
    uint64_t number;                      /* and its number */
};

/* A fiber that waits for a pause to end; on its stack. */
struct engine_waiter {
    struct engine_waiter *next;
    struct fiber *fiber;
};

struct engine_policy {
    char version[ENGINE_VERSION_MAX + 1]; /* "": nobody said */
    uint64_t number;                      /* its place among all there were; 0: nobody said */
    bool is_paused;
    int64_t resume_ms;
    uint64_t aborts;
    LIST_HEAD(, engine_call) calls;
    struct engine_waiter *waiters;
};

#endif
