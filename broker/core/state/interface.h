/*
 * core/state/interface.h - what passes between the core and its I/O side: tasks and callers in, effects out, and rows
 * of the ledger both ways. How they do it: core.h.
 */
#ifndef SLUICE_BROKER_CORE_STATE_INTERFACE_H
#define SLUICE_BROKER_CORE_STATE_INTERFACE_H

#include "schemas/messages/message.h"

struct core;

/* Now, by the ledger's clock (core_restore_clock). */
int64_t core_clock_ms(const struct core *core);

/* ---- what the I/O side tells the core ----------------------------------------- */

/* What of a task scheduling needs; the I/O side parses the task (schemas/task/task.h). */
struct core_task {
    struct slice id;
    struct slice image; /* whose faults are counted together */
    bool needs_engine;
    int64_t limit_ms[STAGE_COUNT];
    int64_t total_ms;    /* from submit to end; 0: the default */
    uint64_t bytes;      /* of its JSON */
    bool is_past;        /* of a submit, a rollout.get: a group of its id was here and is no longer remembered ... */
    uint64_t past_hash;  /* ... whose task_hash was this */
    bool is_new;         /* of a submit: it was looked, and there never was one */
    struct slice policy; /* whose engines it needs; empty: the usual one's */
    /* What a stage needs a worker's handlers to offer: "agent:mine tool:look.up", sorted, blanks between; empty:
     * nothing. */
    struct slice needs[STAGE_COUNT];
    bool reads_record;  /* its evaluation is given the run's record */
    struct slice judge; /* the policy whose engines its evaluation needs, to judge or to score; empty: it needs none */
    unsigned shown_in;  /* bits 1 << stage, for the ledger: code of others sees its JSON there, metadata and all */
};

/* Who a message came from. Where nobody is asked for a key, all are one admin without a name. */
struct caller {
    struct slice route;        /* a client's ROUTER identity, where answers go; empty for a worker */
    struct slice name;         /* of its key; what it submits belongs to this name */
    bool is_admin;             /* sees what belongs to others */
    struct slice peer;         /* where its connection comes from: an IP address, or empty where that has none */
    struct slice lane_refused; /* of a beat: why the broker does not connect to its lane, or empty */
    bool lane_connects;        /* of a beat: a new lane leads nowhere before core_lane_waits says so */
};

/* What becomes of calls that are in flight when an engine is paused. */
#define CALLS(X)                                                                                                       \
    X(FINISH, "finish")                                                                                                \
    X(ABORT, "abort")                                                                                                  \
    X(HOLD, "hold")

/* An engine as the ledger keeps it. */
struct core_engine {
    struct slice url;
    uint64_t runs_max; /* rollouts at a time; 0: no limit */
    bool draining;
    struct slice version; /* of the policy; empty: nobody said */
    uint64_t version_number;
    struct slice calls;               /* its pause, as in policy.pause; empty: it is not paused */
    uint64_t paused_until_ms;         /* by the ledger's clock */
    struct slice credentials;         /* user[:password], never shown; empty: none */
    struct slice policy;              /* its name; empty: the usual one */
    struct slice tokenizer, template; /* digests of what it served last; empty: not known */
};

/* A policy as the ledger keeps it: what its engines serve. */
struct core_policy {
    struct slice name, tokenizer, template;
};

/* ---- samplers (core/state/sampler.h) ------------------------------------------- */

/* What a group is found to be, once, and what else is counted. */
enum sampler_count {
#define VERDICT(name, word, doc) SAMPLER_##name,
#define COUNT(name, word, doc)
#include "broker/core/state/sampler.def"
#undef VERDICT
#undef COUNT
    SAMPLER_VERDICTS,
    SAMPLER_BEFORE_COUNTS = SAMPLER_VERDICTS - 1,
#define VERDICT(name, word, doc)
#define COUNT(name, word, doc) SAMPLER_##name,
#include "broker/core/state/sampler.def"
#undef VERDICT
#undef COUNT
    SAMPLER_COUNTS
};

/* As sampler.open says it. */
struct sampler_rule {
    uint64_t groups, staleness, window, ahead, over_sample, early, replace_max;
    bool has_staleness, has_replace_max; /* neither: any, and as many as the group has rollouts */
    bool keeps_uniform;                  /* filter none */
    bool cancels_surplus;
};

/* A sampler as the ledger keeps it, but for its batch's answer. */
struct core_sampler {
    struct slice stream, trainer;
    struct slice owner; /* whose stream it is; as PERSIST_SAMPLER tells it, for the stream has it once it is restored */
    struct sampler_rule rule;
    uint64_t submitted, batch, batched; /* groups ever; the current one, 0 before; groups of batches that are done */
    uint64_t since[SAMPLER_COUNTS], total[SAMPLER_COUNTS]; /* since the batch before, and ever */
    uint64_t recent[SAMPLER_VERDICTS];                     /* halved when they are many: what is kept lately */
    uint64_t unlisted;                                     /* dropped, since the batch before, and no longer known */
    bool is_closing, cancels;                              /* sampler.close was accepted; live groups too ... */
    uint64_t close_count;                                  /* ... and how many rollouts it has cancelled */
};

/* A group of a sampler as the ledger keeps it. */
struct core_sampled {
    struct slice stream, group;
    uint64_t number;         /* of its submit to the sampler, from 1 */
    uint64_t state, verdict; /* enum sampled_state; enum sampler_count */
    uint64_t first_seq;      /* of its trajectories, 0 before the first */
    uint64_t tokens;         /* sampled, runs that were done again too */
    uint64_t oldest_version; /* of any turn of its runs; 0: none is known */
    uint64_t released_ms;    /* by the ledger's clock */
    uint64_t samples, ended, scored, cancelled, replaced;
    double least, most, sum; /* of raw rewards */
    bool is_low;             /* early verdict: what is left of it goes last */
    bool is_forgotten;       /* a trajectory of it is no longer kept */
};

enum effect_kind {
    /* persist */
    PERSIST_GROUP,    /* a new group: group, stream, samples, task (from msg group.submit) */
    PERSIST_INIT,     /* group's init ended ok: layer_digest, layer, ms */
    PERSIST_RUN,      /* rollout's run ended ok or agent: outcome, detail, layer, answer, record, ms, engine, length */
    PERSIST_END,      /* rollout ended: everything of `end`, and its verdict; record and answer stay as PERSIST_RUN
                         left them, unless `record` is given (run ended task or infra with a record, or an
                         evaluation added to it) */
    PERSIST_ACK,      /* stream acknowledged up to seq */
    PERSIST_ENGINE,   /* engine url is as `row` says (present true) or removed (false) */
    PERSIST_POLICY,   /* `policy` serves that (present true), or is no more (false) */
    PERSIST_FAILURES, /* what has gone wrong with a job so far: everything of `failures` */
    PERSIST_LEASE,    /* a job was handed out, or is held again: everything of `lease`, in the place of the
                         rollout's (or, for init, the group's) earlier one, whatever its stage */
    PERSIST_AGAIN,    /* rollout's run is to be done again: what PERSIST_RUN, _FAILURES and _LEASE told of it has gone;
                      without a rollout, the group's init */
    PERSIST_SAMPLER,  /* stream's sampler is as `sampler` says (present true), or is no more, nor are its groups and
                             its answer (false) */
    PERSIST_SAMPLED,  /* `sampled` is so (present true), or is no more (false): stream and seq, its number */
    PERSIST_BATCH,    /* the answer of stream's current batch is `detail` */
    PERSIST_EARLY_CANCEL, /* `early_cancel` is remembered (present true), or no more (false) */
    PERSIST_EPOCH,        /* this start's epoch */
    /* then */
    SEND_CLIENT,        /* message bytes to a client */
    SEND_EVENTS,        /* message bytes to a client, unless it is behind with reading such, or the broker is */
    SEND_TRAJECTORY,    /* load stream/seq from the ledger, send to a client with tag */
    SEND_LIST,          /* rollout.list: what `list` asks for of the ledger, as one message */
    SEND_RANGE,         /* stream.fetch: load from..limit, send each with tag, then `bytes` (the stream.head) */
    PUBLISH_TRAJECTORY, /* what PERSIST_END wrote, in its words, as a message: publish on t/<stream>/ */
    PUBLISH_HEAD,       /* publish `bytes` on t/<stream>/ */
    HEALTH_CHANGED,     /* of an engine or an image: `health`, for the log */
    LANE_REFUSED,       /* worker's lane is not connected to; `detail` says why */
    LANE_OPEN,          /* connect a PUSH to worker's lane endpoint; limit: messages that may wait in it */
    LANE_SEND,          /* message bytes to a worker */
    LANE_JOB,           /* load payloads, send job.start to a worker */
    LANE_CLOSE,         /* close the worker's lane; what was in it is revoked */
    BACK_UP             /* copy the ledger to `detail` (a name), then answer `client` with tag */
};

/* How a rollout ended; the fields of the trajectory message that are not payload. */
struct core_end {
    struct slice stream;
    uint64_t seq;
    struct slice rollout, group, task;
    uint64_t sample, attempt;
    enum outcome outcome;
    bool trainable, has_reward, has_raw_reward;
    double reward, raw_reward;
    uint64_t group_ended; /* rollouts of its group, itself among them */
    struct slice detail, init_layer, engine;
    uint64_t wait_ms, init_ms, run_ms, eval_ms, ended_ms;
    uint64_t clock_ms; /* when it ended by the ledger's clock, as ended_ms is by the wall clock */
};

/*
 * A job's failures, kept so that budgets outlive the broker. `job` is its name ("run:add-17/3");
 * a row replaces the rollout's (or, for init, the group's) earlier one, whatever its stage.
 */
struct core_failures {
    struct slice job;
    uint64_t attempt, infras, faults, blames, deaths, missing;
    struct slice history;  /* sentences, oldest first, bounded */
    uint64_t fenced_up_to; /* dispatches up to this token have failed, and count no more */
};

/* The dispatch that may speak for a job: its token, and the worker, of that key, that has it. */
struct core_lease {
    struct slice job; /* its name */
    uint64_t token;
    struct slice worker, key; /* key: its name, empty where nobody is asked for one */
};

/* A group's or rollout's name that its owner cancelled before it was submitted, and when by the ledger's clock. */
struct core_early_cancel {
    struct slice name, owner;
    uint64_t clock_ms;
};

/* Ended rollouts of a stream, the newest first; an empty filter lets all pass. */
struct core_list {
    struct slice client; /* ROUTER identity of who asks ... */
    uint64_t tag;        /* ... and its tag */
    struct slice group, outcome, image, engine;
    uint64_t from, to;       /* numbers looked at */
    uint64_t limit;          /* listed at most; all that match are counted */
    uint64_t until_clock_ms; /* ended no later than this, by the ledger's clock */
};

/* What is known of an engine or an image has changed: `detail` says why. */
struct core_health {
    bool is_image;
    const char *news; /* "fault", "failing", "silent" or "healthy" */
    struct slice name;
    uint64_t faults;   /* in a row */
    uint64_t retry_ms; /* failing: until it is tried again */
};

/*
 * By its kind: of the first part what enum effect_kind names, and of the union the one member that is the kind's. What
 * is not the kind's is empty in the first part, and must not be read in the union.
 */
struct effect {
    enum effect_kind kind;
    enum stage stage;
    enum outcome outcome;
    bool present : 1;
    bool reads_record : 1; /* LANE_JOB of an eval: with the run's record */
    bool shares_tasks : 1; /* LANE_JOB: its task may be in a job.task before it */
    bool bundles : 1;      /* LANE_OPEN: several messages may go by it as one */
    bool is_promise : 1;   /* LANE_SEND: not before all that is persisted is durable */
    struct slice group, rollout, stream, job, engine;
    uint64_t seq, sample, token;
    struct slice detail, record, verdict; /* borrowed from the message in hand */
    union {
        struct {                                               /* PERSIST_GROUP */
            uint64_t samples, priority, lease_ms, accepted_ms; /* accepted_ms by the ledger's clock */
            uint64_t task_hash;                                /* as core_handle was given it */
            struct slice owner;                                /* whose stream and group it is, may be empty */
            struct slice task;
            const struct core_task *summary; /* of `task`, good as slices are; NULL: not known */
        };
        struct { /* PERSIST_INIT, PERSIST_RUN: borrowed from the message in hand */
            struct slice layer_digest, layer, answer;
            uint64_t ms;
            bool has_length, truncated; /* RUN: what the task's shaping asks for, told or not */
            uint64_t sampled_tokens;    /* likewise */
        };
        struct core_end end;                   /* PERSIST_END, PUBLISH_TRAJECTORY */
        struct core_failures failures;         /* PERSIST_FAILURES */
        struct core_lease lease;               /* PERSIST_LEASE */
        struct core_engine row;                /* PERSIST_ENGINE, present */
        struct core_policy policy;             /* PERSIST_POLICY */
        struct core_early_cancel early_cancel; /* PERSIST_EARLY_CANCEL */
        const struct core_sampler *sampler;    /* PERSIST_SAMPLER, present; good as slices are */
        const struct core_sampled *sampled;    /* PERSIST_SAMPLED, present; likewise */
        struct core_list list;                 /* SEND_LIST; of `stream` */
        struct core_health health;             /* HEALTH_CHANGED */
        struct {                               /* all that is sent */
            struct slice client;               /* SEND_*, BACK_UP: ROUTER identity */
            struct slice worker;               /* LANE_*: worker id */
            struct slice endpoint, peer;       /* LANE_OPEN; peer: where the worker's connection comes from */
            /* Encoded message: SEND_CLIENT, SEND_EVENTS, LANE_SEND, PUBLISH_HEAD, SEND_RANGE. */
            struct slice bytes;
            uint64_t tag, limit, attempt;
        };
    };
};

_Static_assert(sizeof(struct effect) <= 384, "a cycle may have hundreds of thousands");

struct effects {
    struct effect *items;
    size_t count;
};

/* Effects and the memory that they point into, for who takes them from the core. All zero: there are none. */
struct effect_list {
    struct effect *items;
    size_t count, capacity;
    struct chunk *chunks;
};

/* What the I/O side knows of the process and its disk; all zero before it said so. */
struct core_process {
    const char *version, *commit; /* that last; NULL: not known */
    uint64_t resident_bytes, open_fds, ledger_bytes, disk_free_bytes;
    double cpu_seconds, started_s; /* started_s: since 1970 */
};

/* What is known of the store of layers, for status.get; at first nothing is deleted from it. */
struct core_store {
    const char *state;                  /* a word that lasts: "off", "silent", "refused" or "tended" */
    uint64_t layers, bytes;             /* there, at the last look */
    uint64_t freed_layers, freed_bytes; /* since the start */
    char error[256];                    /* why the last look failed, or "" */
};

#endif
