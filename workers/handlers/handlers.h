/*
 * handlers.h - the handlers beside a worker (--handler): their processes, what they offer together, and which of them
 * gets a job: of those that are ready and offer the name, the one with the fewest.
 *
 * A run worker offers agents and tools, an eval worker evaluators; what else a handler offers is passed over, and so
 * are hooks but of those that were named as such: what passes must not go by one that is not there yet.
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
    const char *const *hooks; /* as --hook says them, likewise */
    size_t hook_count;
    int64_t hook_ms;            /* how long one may take to answer */
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
/* How many --hook there are, and how long each may take to answer. NULL-safe. */
size_t handlers_count_hooks(const struct handlers *handlers);
int64_t handlers_hook_ms(const struct handlers *handlers);
/* The name of that one's handler, as --hook says it. */
const char *handlers_hook_name(const struct handlers *handlers, size_t which);
/*
 * A process of it that is ready, with room for a job, and the name of the hook that it offers; awaits until there is
 * one: the fiber's deadline bounds it. -ETIMEDOUT or -ECANCELED with a sentence, where it is known why it is not.
 */
int handlers_find_hook(struct handlers *handlers, size_t which, struct handler_peer **ret, const char **ret_name,
                       struct fail *fail);
/* Its offer, at any process that is ready; NULL: none. NULL-safe. */
const struct offer *handlers_find_offer(const struct handlers *handlers, enum handler_role role, const char *name);

#endif
