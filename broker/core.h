/*
 * core.h - the broker's mind: which rollout is where, and what to do next.
 *
 * It does no I/O and asks no clock. core_handle takes one decoded message and
 * `now`; core_tick does what is due and says when to be called again. Both append
 * effects to core->effects; the shell (shell.h) carries them out in this order:
 *   1. every PERSIST_* effect, in one ledger transaction, committed;
 *   2. then all others, in the order they were emitted.
 * So nothing leaves the broker before it is on disk.
 *
 * The core keeps no payload: tasks, layers, records and answers live in the
 * ledger; effects name them by group and rollout and the shell loads them.
 *
 * Slices in effects are good until core_effects_clear. Those taken from the
 * message in hand are borrowed from its bytes: the shell keeps a cycle's messages
 * until its effects are done. `now_ms` is monotonic; `wall_ms` is only recorded.
 *
 * Invariants (core_check): each rollout is in exactly one place; counts equal
 * lengths; every lease has a living worker and a deadline; no worker holds more
 * than its slots; no queue is over its limit.
 */
#ifndef SLUICE_BROKER_CORE_H
#define SLUICE_BROKER_CORE_H

#include "schemas/message.h"

struct core;

/* settings.def makes this struct and `sluice broker --help`. */
struct core_settings {
    int64_t beat_timeout_ms;    /* 5000: no beat for so long: the worker is lost */
    int64_t hold_grace_ms;      /* 2000: leased but not in the worker's beat: handed out again */
    int64_t adopt_grace_ms;     /* 3000: after a start, how long beats may adopt running jobs */
    int64_t deadline_grace_ms;  /* 30000: beyond a stage's own limit: the job is taken away */
    int64_t head_period_ms;     /* 1000: how often stream heads are published */
    int64_t retry_first_ms;     /* 500: first back-off after an infra outcome, doubling ... */
    int64_t retry_last_ms;      /* 30000: ... up to this */
    uint64_t infra_budget;      /* 8: infra outcomes of one job before it becomes the rollout's */
    uint64_t blame_budget;      /* 3: workers a job may kill, alone, before it is set aside as infra */
    uint64_t rollouts_max;      /* 1000000: accepted and not ended; more are refused, queue-full */
};

struct core_settings core_settings_default(void);

/* ---- what the shell tells the core -------------------------------------------- */

/* Facts of a task that scheduling needs; the shell parses the task (schemas/task.h). */
struct core_task {
    struct slice id;
    bool needs_engine;
    int64_t limit_ms[STAGE_COUNT];
};

enum effect_kind {
    /* persist */
    PERSIST_GROUP,    /* a new group: group, stream, samples, task (from msg group.submit) */
    PERSIST_INIT,     /* group's init ended ok: layer_digest, layer, ms */
    PERSIST_RUN,      /* rollout's run ended ok or agent: outcome, detail, layer, answer, record, ms, engine */
    PERSIST_END,      /* rollout ended: everything of `end`; record and answer stay as PERSIST_RUN left them,
                         unless `record` is given (run ended task or infra with a record) */
    PERSIST_ACK,      /* stream acknowledged up to seq */
    PERSIST_ENGINE,   /* engine url added (present true) or removed (false) */
    PERSIST_EPOCH,    /* this start's epoch */
    /* then */
    SEND_CLIENT,      /* message bytes to a client */
    SEND_TRAJECTORY,  /* load stream/seq from the ledger, send to a client with tag */
    SEND_RANGE,       /* stream.fetch: load from..limit, send each with tag, then `bytes` (the stream.head) */
    PUBLISH_TRAJECTORY, /* load stream/seq, publish on t/<stream> */
    PUBLISH_HEAD,     /* publish `bytes` on t/<stream> */
    LANE_OPEN,        /* connect a PUSH to worker's lane endpoint */
    LANE_SEND,        /* message bytes to a worker */
    LANE_JOB,         /* load payloads, send job.start to a worker */
    LANE_CLOSE        /* close the worker's lane; what was in it is revoked */
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
};

struct effect {
    enum effect_kind kind;
    struct slice client;   /* SEND_*: ROUTER identity */
    struct slice worker;   /* LANE_*: worker id */
    struct slice endpoint; /* LANE_OPEN */
    struct slice bytes;    /* SEND_CLIENT, LANE_SEND, PUBLISH_HEAD, SEND_RANGE: encoded message */
    struct slice group, rollout, stream, engine, task, job;
    enum stage stage;
    uint64_t tag, seq, limit, samples, sample, token, attempt, ms;
    enum outcome outcome;
    bool present;
    struct slice detail, layer_digest, layer, answer, record; /* borrowed from the message in hand */
    struct core_end end;   /* PERSIST_END */
};

struct effects {
    struct effect *items;
    size_t count;
};

/* ---- life ------------------------------------------------------------------------ */

/* `epoch` is greater than any before. NULL when out of memory. */
struct core *core_create(const struct core_settings *settings, uint64_t epoch, int64_t now_ms);
void core_destroy(struct core **core);

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
};
struct core_rollout_row {
    struct slice rollout, group;
    uint64_t sample;
    bool run_done, ended;
    enum outcome run_outcome;
    struct slice run_detail, engine;
    uint64_t run_ms;
    struct slice stream; /* ended */
    uint64_t seq;        /* ended */
};
bool core_restore_stream(struct core *core, struct slice stream, uint64_t first, uint64_t head);
bool core_restore_engine(struct core *core, struct slice url);
bool core_restore_group(struct core *core, const struct core_group_row *row);
bool core_restore_rollout(struct core *core, const struct core_rollout_row *row);

/* ---- messages and time --------------------------------------------------------- */

/*
 * A message of a client (from FRONT; `client` is its identity) or of a worker (from
 * SINK; `client` is empty). `in` is the decoded struct. For group.submit `task` holds
 * the parsed facts and task_hash; otherwise NULL. Never fails: a peer's mistake
 * becomes a `refused` effect, out of memory stops the process's intake (core_failed).
 */
void core_handle(struct core *core, int64_t now_ms, int64_t wall_ms, struct slice client,
                 enum message_id id, const void *in, const struct core_task *task,
                 uint64_t task_hash);

/* A lane's connection broke (socket monitor): the worker is lost at once. */
void core_lane_broke(struct core *core, int64_t now_ms, struct slice worker);

/* Does what is due; returns when to be called again at the latest (monotonic ms). */
int64_t core_tick(struct core *core, int64_t now_ms, int64_t wall_ms);

/* Hands out what can be handed out; call once per cycle, after the cycle's messages. */
void core_dispatch(struct core *core, int64_t now_ms);

struct effects core_effects(const struct core *core);
void core_effects_clear(struct core *core);

/* True once an allocation failed: the shell stops without acknowledging anything more. */
bool core_failed(const struct core *core);

/* Verifies the invariants; NULL, or a static sentence saying what is broken. Slow; for tests. */
const char *core_check(const struct core *core);

/* The status message's JSON appended to `out`. */
bool core_status(const struct core *core, int64_t now_ms, struct buffer *out);

#endif
