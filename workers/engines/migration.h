/*
 * migration.h - a rollout that goes on on another engine, between two turns, because the broker says so
 * (job.migrate). All on one thread.
 */
#ifndef SLUICE_WORKERS_ENGINES_MIGRATION_H
#define SLUICE_WORKERS_ENGINES_MIGRATION_H

#include <stdbool.h>

struct engine;

struct engine_migration {
    struct engine *to;       /* where to; NULL: nothing is asked for */
    const struct engine *at; /* where it is since ... */
    bool is_new;             /* ... and the broker has not heard of it yet */
};

#endif
