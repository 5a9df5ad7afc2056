/*
 * core/state/sampler.h - samplers, and what they know of the groups that were submitted to them (docs/sampler.md).
 *
 * A sampler hangs from its stream. Each group submitted to the stream has a struct sampled, in exactly one of the
 * sampler's lists; while it is live its group's work points to it. All of both is in the ledger as it is here:
 * what changes is noted, and core/sampler/ writes it at the end of the step.
 */
#ifndef SLUICE_BROKER_CORE_STATE_SAMPLER_H
#define SLUICE_BROKER_CORE_STATE_SAMPLER_H

#include "broker/core/state/interface.h"
#include "common/containers/heap.h"
#include "common/containers/list.h"
#include "schemas/messages/message_max.h"

struct group;
struct stream;

enum {
    SAMPLERS_MAX = 4096,       /* more are refused, queue-full */
    SAMPLER_POOL_MAX = 65536,  /* groups of one that are held; a submit with one more is refused, queue-full */
    SAMPLER_LISTED_MAX = 1024, /* dropped groups that a batch's answer names; of more, the last submitted */
    SAMPLER_TRAINER_MAX = MESSAGE_MAX(sampler_open, trainer)
};

/* Where a group is. */
enum sampled_state {
    SAMPLED_HELD,    /* submitted, its init is not queued */
    SAMPLED_LIVE,    /* released; no verdict yet */
    SAMPLED_READY,   /* kept, in no batch */
    SAMPLED_CURRENT, /* in the current batch */
    SAMPLED_DROPPED, /* until the next batch has told so */
    SAMPLED_STATES
};

struct sampled {
    struct list link;        /* in its sampler's list of its state, by number */
    struct list noted;       /* in its sampler's `noted`: something changed in this step */
    struct heap_node needed; /* in its sampler's `needed`, while trajectories of it must be kept */
    struct sampler *sampler;
    struct group *group;     /* until its last rollout has ended */
    struct core_sampled row; /* what the ledger has of it; its names are the stream's and `id` */
    uint8_t usual_priority;
    uint32_t id_len;
    char id[];
};

/* A request that waits for its batch. */
struct sampler_wait {
    struct heap_node due; /* in core->sampler_waits */
    bool is_waiting;
    uint64_t tag;
    size_t client_len;
    uint8_t *client;
};

struct sampler {
    struct list link;  /* in core->samplers */
    struct list noted; /* in core->noted_samplers: there is something to settle */
    struct stream *stream;
    struct core_sampler row; /* what the ledger has of it; its names are the stream's and `trainer` */
    char trainer[SAMPLER_TRAINER_MAX + 1];
    struct list groups[SAMPLED_STATES];
    size_t counts[SAMPLED_STATES];
    struct list changed; /* groups, by `noted` */
    struct heap needed;  /* groups, by first_seq */
    struct sampler_wait wait;
    char *answer;  /* of the current batch: its JSON */
    bool is_asked; /* for the batch after the current one */
    bool is_told;  /* the current one was, since this start of the broker */
    bool is_changed;
    bool is_spoiled; /* some of those that are ready may be so no longer */
};

static inline struct slice sampled_id(const struct sampled *sampled) { return slice_of(sampled->id, sampled->id_len); }

#endif
