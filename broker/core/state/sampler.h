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
    uint64_t number;         /* of its submit to the sampler, from 1 */
    uint64_t first_seq;      /* of its trajectories, 0 before the first */
    uint64_t tokens;         /* sampled, runs that were done again too */
    uint64_t oldest_version; /* of any turn of its runs; 0: none is known */
    uint64_t released_ms;    /* by the ledger's clock */
    double least, most, sum; /* of raw rewards */
    uint32_t samples, ended, scored, cancelled, replaced;
    uint8_t state, verdict, usual_priority;
    bool is_low;       /* early verdict: what is left of it goes last */
    bool is_forgotten; /* a trajectory of it is no longer kept */
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
    struct sampler_rule rule;
    char trainer[SAMPLER_TRAINER_MAX + 1];
    uint64_t submitted, batch, batched; /* groups ever; the current one, 0 before; groups of batches that are done */
    uint64_t since[SAMPLER_COUNTS], total[SAMPLER_COUNTS]; /* since the batch before, and ever */
    uint64_t recent[SAMPLER_VERDICTS];                     /* halved when they are many: what is kept lately */
    uint64_t unlisted;                                     /* dropped, since the batch before, and no longer known */
    struct list groups[SAMPLED_STATES];
    size_t counts[SAMPLED_STATES];
    struct list changed; /* groups, by `noted` */
    struct heap needed;  /* groups, by first_seq */
    struct sampler_wait wait;
    char *answer;  /* of the current batch: its JSON */
    bool is_asked; /* for the batch after the current one */
    bool is_changed;
    bool is_spoiled;          /* some of those that are ready may be so no longer */
    bool is_closing, cancels; /* sampler.close was accepted; live groups too */
    uint64_t close_count;
};

static inline struct slice sampled_id(const struct sampled *sampled) { return slice_of(sampled->id, sampled->id_len); }

#endif
