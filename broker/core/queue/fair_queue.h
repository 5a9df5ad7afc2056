/*
 * core/queue/fair_queue.h - whose turn it is: the queued jobs of a stage, shared out fairly.
 *
 * Two fair queues, one inside the other: a stage has one of clients, and in it each client
 * one of its streams. In a queue the member with the fewest leased jobs of the stage is
 * next; among equals, the one that has waited longest for its turn. So the free slots
 * go to whoever has the least: max-min fairness, first between clients, then between
 * the streams of each. Within a stream higher priorities come first, and within one
 * priority who came first. A member with nothing queued is in no queue and costs nothing;
 * each step is O(log n) in the clients and streams that have something queued.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_FAIR_QUEUE_H
#define SLUICE_BROKER_CORE_QUEUE_FAIR_QUEUE_H

#include "broker/core/state/stream.h"

struct core;
struct job;

/* A job of PLACE_QUEUED comes in, at the end or the front of its priority, or goes. */
void fair_queue_push(struct core *core, struct job *job, bool front);
void fair_queue_remove(struct core *core, struct job *job);
/* The queued job that is next in its stage, or NULL. */
struct job *fair_queue_next(const struct core *core, unsigned stage);
/* A job's lease begins, or has ended. */
void fair_queue_lease(struct core *core, const struct job *job);
void fair_queue_release(struct core *core, const struct job *job);

#endif
