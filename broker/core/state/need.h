/*
 * core/state/need.h - what stages of tasks need of handlers, and what the handlers of workers offer.
 *
 * Both are sets of names, "agent:mine tool:look.up", sorted. A need is one set of a stage that a live group has, and
 * offers are one set that workers of a stage have: equal sets are one struct, and each need knows which offers meet it.
 * A group names its needs by number, in what was padding: without one, nothing is looked up.
 */
#ifndef SLUICE_BROKER_CORE_STATE_NEED_H
#define SLUICE_BROKER_CORE_STATE_NEED_H

#include "broker/core/state/job.h"

enum {
    NEEDS_MAX = 1024,  /* sets that live groups have; a submit with another is refused, queue-full */
    OFFERS_MAX = 1024, /* sets that workers have; who comes with another is as one without handlers */
    OFFERED_MAX = 64   /* names of one worker, as in handler.hello; more are refused */
};

/* What some workers of a stage offer (core/needs/offers.h). */
struct offers {
    struct list link;    /* in core->offers[stage] */
    uint64_t workers;    /* that have it */
    struct heap free;    /* those that may be given jobs, the freest first */
    uint64_t free_slots; /* of those */
    uint16_t number;     /* its bit in a need's `met` */
    uint32_t len;
    char names[];
};

/* What some groups need of a stage's workers (core/needs/needs.h). */
struct need {
    uint64_t groups;                   /* live ones that have it */
    uint64_t queued;                   /* its jobs that are QUEUED: each expects a slot */
    size_t waiting;                    /* its jobs that are UNOFFERED ... */
    struct list clients;               /* ... by who owns them: struct need_client, whose turn it is first */
    struct list link;                  /* in core->waiting_needs[stage] while any wait */
    uint8_t met[(OFFERS_MAX + 7) / 8]; /* by which offers */
    enum stage stage;
    uint32_t len;
    char names[];
};

/* One client's jobs that wait for a need (core/needs/lines.h). */
struct need_client {
    struct list link; /* in its need's `clients` */
    struct client *client;
    struct list lines; /* whose turn it is first */
};

/* One stream's of them. */
struct need_line {
    struct list link; /* in its client's `lines` */
    struct list here; /* in its stream's `lines` */
    struct need *need;
    struct stream *stream;
    struct need_client *client;
    uint32_t levels;    /* bit p: jobs[p] is in use and not empty */
    struct list jobs[]; /* PRIORITIES */
};

#endif
