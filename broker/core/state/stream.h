/*
 * core/state/stream.h - streams, the clients that own them, what these use, and what they have queued.
 */
#ifndef SLUICE_BROKER_CORE_STATE_STREAM_H
#define SLUICE_BROKER_CORE_STATE_STREAM_H

#include "common/containers/heap.h"
#include "common/containers/list.h"
#include "schemas/messages/message.h"
#include "schemas/messages/message_max.h"

struct kept;
struct sampler;

/* ---- quotas (core/streams/quotas.h) --------------------------------------------------- */

enum quota {
#define QUOTA(name, setting, used, filled, remedy) QUOTA_##name,
#include "broker/core/state/quotas.def"
#undef QUOTA
    QUOTA_COUNT
};

/* What is used of a quota, and how fast it becomes free. */
struct usage {
    uint64_t used;
    uint64_t holders;             /* clients that use any of it */
    uint64_t freed, freed_before; /* in the window since since_ms, and the one before */
    int64_t since_ms, before_ms;
};

/* ---- fair queues (core/queue/fair_queue.h) --------------------------------------------- */

enum {
    PRIORITIES = MESSAGE_MAX(group_submit, priority) + 1,
    PRIORITY_USUAL = 5,
    SEQUENCE_BITS = 38 /* of a member's key; above them, its leased jobs */
};

struct fair_queue {
    struct heap heap; /* of members with something queued */
    int64_t sequence; /* the last one given */
};

/* What one client, or one stream, has of a stage. */
struct fair_member {
    struct heap_node node;
    uint32_t queued, leased;
};

struct client_queue {
    struct fair_member member;
    struct fair_queue streams;
};

struct stream_queue {
    struct fair_member member;
    uint32_t levels; /* bit p: jobs[p] is in use and not empty */
    struct list jobs[PRIORITIES];
};

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

/* ---- streams ----------------------------------------------------------------------- */

struct stream {
    struct list link; /* in core->streams */
    struct client *owner;
    struct stream_queue queues[STAGE_COUNT];
    struct list lines; /* of what waits for workers that offer it (core/needs/lines.h) */
    struct list live;  /* groups with rollouts that have not ended, oldest first */
    struct heap ended; /* groups without, by their last number, until it is acknowledged */
    uint64_t first, head, pending;
    struct sampler *sampler;      /* NULL: it is an ordinary stream */
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

#endif
