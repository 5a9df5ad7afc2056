/*
 * core.h - the broker's mind: which rollout is where, and what to do next.
 *
 * It does no I/O and asks no clock. core_handle takes one decoded message and
 * `now`; core_tick does what is due and says when to be called again. Both append
 * effects to core->effects; the I/O side (io.h) carries them out in this order:
 *   1. every PERSIST_* effect, in one ledger transaction, committed;
 *   2. then all others, in the order they were emitted.
 * So nothing leaves the broker before it is on disk.
 *
 * The core keeps no payload: tasks, layers, records and answers live in the
 * ledger; effects name them by group and rollout and the I/O side loads them.
 *
 * Slices in effects are good until core_effects_clear. Those taken from the
 * message in hand are borrowed from its bytes: the I/O side keeps a cycle's messages
 * until its effects are done. `now_ms` is monotonic; `wall_ms` is only recorded.
 *
 * Invariants (core_check): each rollout is in exactly one place; counts equal
 * lengths; every lease has a living worker and a deadline; no worker holds more
 * than its slots; no queue is over its limit.
 */
#ifndef SLUICE_BROKER_CORE_CORE_H
#define SLUICE_BROKER_CORE_CORE_H

#include "schemas/messages/message.h"

struct core;

/* Groups remembered by name, by core and ledger, after all their rollouts are acknowledged. Of those
   before them the ledger keeps digests (ledger_find_past). */
enum { FORGOTTEN_MAX = 100000 };

#define SETTING_MEMBER_MS(name) name##_ms
#define SETTING_MEMBER_COUNT(name) name
#define SETTING_MEMBER_BYTES(name) name
#define SETTING_TYPE_MS int64_t
#define SETTING_TYPE_COUNT uint64_t
#define SETTING_TYPE_BYTES uint64_t

struct core_settings {
#define SETTING(type, name, preset, min, max, doc) SETTING_TYPE_##type SETTING_MEMBER_##type(name);
#include "broker/core/settings.def"
#undef SETTING
};

struct core_settings core_settings_default(void);

/* How a rollout gets its engine (core/engines/placing.c). */
#define PLACINGS(X)                                                                                                    \
    X(LIVE_TOKENS, "live-tokens") /* least tokens of live contexts, and near its group */                              \
    X(ASSIGNMENTS, "assignments") /* fewest rollouts given since the start */                                          \
    X(ROUND_ROBIN, "round-robin")                                                                                      \
    X(HASH, "hash") /* of the rollout's name and the engine's */

enum placing {
#define X(name, word) PLACING_##name,
    PLACINGS(X)
#undef X
        PLACING_COUNT
};

/* ---- what the I/O side tells the core ----------------------------------------- */

/* What of a task scheduling needs; the I/O side parses the task (schemas/task/task.h). */
struct core_task {
    struct slice id;
    struct slice image; /* whose faults are counted together */
    bool needs_engine;
    int64_t limit_ms[STAGE_COUNT];
    int64_t total_ms;    /* from submit to end; 0: the default */
    uint64_t bytes;      /* of its JSON */
    bool is_past;        /* of a submit: a group of its id was here and is no longer remembered ... */
    uint64_t past_hash;  /* ... whose task_hash was this */
    struct slice policy; /* whose engines it needs; empty: the usual one's */
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

enum effect_kind {
    /* persist */
    PERSIST_GROUP,    /* a new group: group, stream, samples, task (from msg group.submit) */
    PERSIST_INIT,     /* group's init ended ok: layer_digest, layer, ms */
    PERSIST_RUN,      /* rollout's run ended ok or agent: outcome, detail, layer, answer, record, ms, engine */
    PERSIST_END,      /* rollout ended: everything of `end`; record and answer stay as PERSIST_RUN left them,
                         unless `record` is given (run ended task or infra with a record) */
    PERSIST_ACK,      /* stream acknowledged up to seq */
    PERSIST_ENGINE,   /* engine url is as `row` says (present true) or removed (false) */
    PERSIST_POLICY,   /* `policy` serves that (present true), or is no more (false) */
    PERSIST_FAILURES, /* what has gone wrong with a job so far: everything of `failures` */
    PERSIST_LEASE,    /* a job was handed out, or is held again: everything of `lease`, in the place of the
                         rollout's (or, for init, the group's) earlier one, whatever its stage */
    PERSIST_AGAIN, /* rollout's run is to be done again: what PERSIST_RUN, _FAILURES and _LEASE told of it has gone */
    PERSIST_EARLY_CANCEL, /* `early_cancel` is remembered (present true), or no more (false) */
    PERSIST_EPOCH,        /* this start's epoch */
    /* then */
    SEND_CLIENT,        /* message bytes to a client */
    SEND_TRAJECTORY,    /* load stream/seq from the ledger, send to a client with tag */
    SEND_LIST,          /* rollout.list: what `list` asks for of the ledger, as one message */
    SEND_RANGE,         /* stream.fetch: load from..limit, send each with tag, then `bytes` (the stream.head) */
    PUBLISH_TRAJECTORY, /* load stream/seq, publish on t/<stream>/ */
    PUBLISH_HEAD,       /* publish `bytes` on t/<stream>/ */
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
    bool trainable, has_reward;
    double reward;
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
    uint64_t attempt, infras, faults, blames, deaths;
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

/*
 * By its kind: of the first part what enum effect_kind names, and of the union the one member that is the kind's. What
 * is not the kind's is empty in the first part, and must not be read in the union.
 */
struct effect {
    enum effect_kind kind;
    enum stage stage;
    enum outcome outcome;
    bool present;
    struct slice group, rollout, stream, job, engine;
    uint64_t seq, sample, token;
    struct slice detail, record; /* borrowed from the message in hand */
    union {
        struct {                                               /* PERSIST_GROUP */
            uint64_t samples, priority, lease_ms, accepted_ms; /* accepted_ms by the ledger's clock */
            struct slice owner;                                /* whose stream and group it is, may be empty */
            struct slice task;
            const struct core_task *summary; /* of `task`, borrowed as it is; NULL: not known */
        };
        struct { /* PERSIST_INIT, PERSIST_RUN: borrowed from the message in hand */
            struct slice layer_digest, layer, answer;
            uint64_t ms;
        };
        struct core_end end;                   /* PERSIST_END */
        struct core_failures failures;         /* PERSIST_FAILURES */
        struct core_lease lease;               /* PERSIST_LEASE */
        struct core_engine row;                /* PERSIST_ENGINE, present */
        struct core_policy policy;             /* PERSIST_POLICY */
        struct core_early_cancel early_cancel; /* PERSIST_EARLY_CANCEL */
        struct core_list list;                 /* SEND_LIST; of `stream` */
        struct {                               /* all that is sent */
            struct slice client;               /* SEND_*, BACK_UP: ROUTER identity */
            struct slice worker;               /* LANE_*: worker id */
            struct slice endpoint, peer;       /* LANE_OPEN; peer: where the worker's connection comes from */
            struct slice bytes;                /* SEND_CLIENT, LANE_SEND, PUBLISH_HEAD, SEND_RANGE: encoded message */
            uint64_t tag, limit, attempt;
        };
    };
};

_Static_assert(sizeof(struct effect) <= 384, "a cycle may have hundreds of thousands");

struct effects {
    struct effect *items;
    size_t count;
};

/* ---- life ------------------------------------------------------------------------ */

/* `epoch` is greater than any before. NULL when out of memory. */
struct core *core_create(const struct core_settings *settings, uint64_t epoch, int64_t now_ms);
void core_destroy(struct core **core);
/* PLACING_LIVE_TOKENS unless this is called. */
void core_set_placing(struct core *core, enum placing placing);

/*
 * Restoring, before the first message: what the ledger holds. Groups before their
 * rollouts. Restored jobs wait adopt_grace_ms for a worker's beat to adopt them.
 * A group restored with init_done has had PERSIST_INIT; a rollout with run_done PERSIST_RUN.
 * A rollout of which no row is told was acknowledged and is forgotten; a group whose task has
 * no id has only such ones left.
 */
struct core_group_row {
    struct slice group, stream;
    uint64_t samples, task_hash; /* task_hash: of stream, samples and task bytes, as core_handle makes it */
    struct core_task task;
    bool init_done;
    struct slice init_layer; /* digest or empty */
    uint64_t init_ms;
    uint64_t priority, lease_ms, accepted_ms; /* as PERSIST_GROUP told them */
};
struct core_rollout_row {
    struct slice rollout, group;
    uint64_t sample;
    bool run_done, ended;
    bool run_again; /* PERSIST_AGAIN, and its run has not ended since */
    enum outcome run_outcome;
    struct slice run_detail, engine;
    uint64_t run_ms;
    struct slice stream;   /* ended */
    uint64_t seq;          /* ended */
    uint64_t record_bytes; /* run_done, ended: of its record, where there is one */
    uint64_t ended_ms;     /* ended: when, by the ledger's clock */
};
bool core_restore_stream(struct core *core, struct slice stream, struct slice owner, uint64_t first, uint64_t head);
/* The highest version_number there ever was, which engines that are removed may have had; before the engines. */
void core_restore_versions(struct core *core, uint64_t highest);
/* Before the engines. */
bool core_restore_policy(struct core *core, const struct core_policy *row);
bool core_restore_engine(struct core *core, const struct core_engine *row);
bool core_restore_group(struct core *core, const struct core_group_row *row);
bool core_restore_rollout(struct core *core, const struct core_rollout_row *row);
/* After the rollouts. Of a job whose stage is over: nothing is done, true. */
bool core_restore_failures(struct core *core, const struct core_failures *failures);
/* After the rollouts, too. Of a job of another stage than the one at hand: nothing is done, true. */
bool core_restore_lease(struct core *core, const struct core_lease *lease);
bool core_restore_early_cancel(struct core *core, struct slice name, struct slice owner, uint64_t clock_ms);
/*
 * The ledger's clock at the restart, by which accepted_ms, ended_ms and an early cancel's time are understood and
 * which goes on with now_ms; call it first. Without it the wall clock of the first call is taken.
 */
void core_restore_clock(struct core *core, int64_t clock_ms);
int64_t core_clock_ms(const struct core *core);

/* ---- messages and time --------------------------------------------------------- */

/*
 * A message of a client (from FRONT) or of a worker (from SINK; caller->route is empty).
 * `in` is the decoded struct. For group.submit `task` holds the parsed summary, and what the
 * ledger knows of a group that the core does not remember; otherwise NULL. Never fails: a peer's mistake
 * becomes a `refused` effect, out of memory stops the process's intake (core_failed).
 */
void core_handle(struct core *core, int64_t now_ms, int64_t wall_ms, const struct caller *caller, enum message_id id,
                 const void *in, const struct core_task *task, uint64_t task_hash);

/* Whether a submit of this group needs no look into the past: the core knows it. */
bool core_remembers(const struct core *core, struct slice group);

/*
 * May this client read that stream's feed? A stream nobody has named yet becomes the caller's by
 * asking; an admin's asking does not make it so. False too when no more streams fit.
 */
bool core_may_read(struct core *core, const struct caller *caller, struct slice stream);
/* Whether there is such a stream, and it is the caller's to use. */
bool core_is_owner(const struct core *core, const struct caller *caller, struct slice stream);
/* Nobody listens to that feed (any more): a stream that was only ever asked for is free again. */
void core_nobody_reads(struct core *core, struct slice stream);

/* The disk of the ledger is nearly full (or no longer): submits are refused meanwhile. */
void core_disk_is_low(struct core *core, bool is_low);

/* What is known of the store of layers, for status.get; at first nothing is deleted from it. */
struct core_store {
    const char *state;                  /* a word that lasts: "off", "silent", "refused" or "tended" */
    uint64_t layers, bytes;             /* there, at the last look */
    uint64_t freed_layers, freed_bytes; /* since the start */
    char error[256];                    /* why the last look failed, or "" */
};
void core_tell_store(struct core *core, const struct core_store *store);

/* A message of a worker, `from` by its key's name or "", could not be read, and why. */
void core_tell_unread(struct core *core, int64_t now_ms, struct slice from, struct slice why);

/*
 * A lane's connection broke (socket monitor): the worker is lost at once. False where nothing is lost: it had
 * drained, or is not known.
 */
bool core_lane_broke(struct core *core, int64_t now_ms, struct slice worker);
/* Its lane does not lead there yet, and why: it is given no jobs meanwhile. `why` empty: now it does. */
void core_lane_waits(struct core *core, int64_t now_ms, struct slice worker, struct slice why);

/*
 * The broker itself stood still for so long until now. Workers, deadlines and leases get that
 * time back: what they sent meanwhile has not been read yet. Call it before what is read now.
 */
void core_stalled(struct core *core, int64_t now_ms, int64_t stalled_ms);

/* Does what is due; returns when to be called again at the latest (monotonic ms). */
int64_t core_tick(struct core *core, int64_t now_ms, int64_t wall_ms);

/* Hands out what can be handed out; call once per cycle, after the cycle's messages. */
void core_dispatch(struct core *core, int64_t now_ms);

struct effects core_effects(const struct core *core);
void core_effects_clear(struct core *core);

/* True once an allocation failed: the I/O side stops without acknowledging anything more. */
bool core_failed(const struct core *core);

/* Verifies the invariants; NULL, or a static sentence saying what is broken. Slow; for tests. */
const char *core_check(const struct core *core);

/* The status message's JSON appended to `out`. */
bool core_status(const struct core *core, int64_t now_ms, struct buffer *out);

#endif
