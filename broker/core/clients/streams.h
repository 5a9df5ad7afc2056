/*
 * core/clients/streams.h - streams, and the clients that own them. Both live as long as the core, but for streams that were
 * only ever asked for on FEED: they go with the last who listens.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_STREAMS_H
#define SLUICE_BROKER_CORE_CLIENTS_STREAMS_H

#include "broker/core/core.h"
#include "broker/core/clients/quotas.h"
#include "broker/core/queue/fair_queue.h"

struct call;
struct core;
struct kept;

/* ---- clients: who owns streams; known for as long as they are ------------------------- */

struct client {
    struct list link; /* in core->clients */
    struct client_queue queues[STAGE_COUNT];
    uint64_t used[QUOTA_COUNT];
    uint64_t accepted, ended[OUTCOME_COUNT]; /* since the start */
    size_t stream_count;
    uint32_t name_len;
    char name[]; /* of its key; empty where nobody is asked for one */
};

struct client *client_intern(struct core *core, struct slice name); /* NULL: out of memory */
void client_destroy(struct client *client);

/* ---- streams ----------------------------------------------------------------------- */

struct stream {
    struct list link; /* in core->streams */
    struct client *owner;
    struct stream_queue queues[STAGE_COUNT];
    struct list live;  /* groups with rollouts that have not ended, oldest first */
    struct heap ended; /* groups without, by their last number, until it is acknowledged */
    uint64_t first, head, pending;
    struct kept *kept;            /* a ring of those from first to head ... */
    size_t kept_capacity;         /* ... 0 or a power of two */
    uint64_t kept_bytes;          /* what they weigh */
    uint64_t ripe;                /* up to here they were there at the last head period */
    uint64_t expired, expired_to; /* forgotten by retention since the start; up to here */
    uint64_t under_lease;         /* of those pending */
    int64_t renewed_ms;           /* when its trainer was heard of last */
    bool fresh;                   /* something is new since its head was last published */
    bool is_used;                 /* it was submitted to: it is kept, and not only asked for on FEED */
    uint32_t name_len;
    char name[];
};

/* A new one belongs to `owner`. NULL when out of memory. */
struct stream *stream_intern(struct core *core, struct slice name, struct slice owner);
void stream_destroy(struct stream *stream);
/* One that nothing was ever submitted to. */
void stream_remove(struct core *core, struct stream *stream);

#endif
