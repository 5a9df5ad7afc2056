/*
 * handlers.h - the handlers beside a worker (--handler): their processes, what they offer together, and which of them
 * gets a job: of those that are ready and offer the name, the one with the fewest.
 *
 * A run worker offers agents and tools, an eval worker evaluators; what else a handler offers is passed over.
 */
#ifndef SLUICE_WORKERS_HANDLERS_HANDLERS_H
#define SLUICE_WORKERS_HANDLERS_HANDLERS_H

#include "workers/handlers/processes/process.h"

enum { HANDLERS_MAX = 64, HANDLER_PROCESSES_MAX = 256, HANDLERS_OFFERS_MAX = 4096 };

struct handlers;

struct handlers_plan {
    enum stage stage;
    const char *const *texts; /* as --handler says them; borrowed as long as the handlers live */
    size_t count;
    uint64_t processes;         /* of each */
    const char *scratch;        /* a private directory: program_open */
    void (*changed)(void *arg); /* what is offered changed, or the last process ended; may be NULL */
    void *arg;
};

/* -EINVAL for what is said of a handler, else what the system refused. They start at the loop's next turns. */
struct handlers *handlers_create(struct loop *loop, const struct handlers_plan *plan, struct fail *fail);
/* Kills what is left. NULL-safe. */
void handlers_destroy(struct handlers **handlers);
/* Lets all end, as handler_process_stop does; handlers_are_over once they have. NULL-safe. */
void handlers_stop(struct handlers *handlers);
/* Processes that start from now on must greet within so long; HANDLER_HELLO_MS at first. */
void handlers_set_hello(struct handlers *handlers, int64_t bound_ms);
bool handlers_are_over(const struct handlers *handlers);

/* What is offered now, as worker.beat has it; "" for nothing. Borrowed, until something changes. NULL-safe. */
const char *handlers_offers(const struct handlers *handlers);
/* Why one of them is not ready, in words; NULL: all are, or are still starting. Borrowed likewise. */
const char *handlers_error(const struct handlers *handlers);

/*
 * A process that offers it, with room for a job; awaits, where all have as many as they take. -EOWNERDEAD with a
 * sentence: none is there. NULL-safe.
 */
int handlers_find(struct handlers *handlers, enum handler_role role, const char *name, struct handler_peer **ret,
                  struct fail *fail);
/* Its offer, at any process that is ready; NULL: none. NULL-safe. */
const struct offer *handlers_find_offer(const struct handlers *handlers, enum handler_role role, const char *name);

#endif
