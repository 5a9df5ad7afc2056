/*
 * core/state.h - what the core's files share: the state, and who may change it.
 *
 *   core.c           life, which handler a message has, what is due
 *   core/effects.c   the list of effects and the memory they point into
 *   core/queue/jobs.c      a job's places: entering, leaving, leases
 *   core/queue/fencing_tokens.c  which dispatches may speak for a job
 *   core/queue/failures.c   what went wrong with a job: budgets, back-offs, its history
 *   core/engines/breaker.c   circuit breakers: what is set aside, and its trials
 *   core/engines/images.c    images, their faults, and what waits for them
 *   core/queue/expiry.c    the ends of a group's total time and of its trainer's lease
 *   core/workers/stall.c     the broker's own stalls
 *   core/queue/early_cancel.c   cancels that came before their submit
 *   core/queue/groups.c    groups and rollouts: their life and ends
 *   core/clients/submit.c    group.submit
 *   core/queue/results.c   what a result does, by stage and outcome
 *   core/queue/fair_queue.c  which job is next: fair shares and priorities
 *   core/clients/owners.c    whose a stream is, and what others may not do with it
 *   core/clients/limits.c    what is used of each limit, and the overload ladder
 *   core/clients/retention.c what trajectories are kept, how heavy and how old
 *   core/queue/cancel.c    rollout.cancel
 *   core/workers/workers.c   beats, reconciliation, lost workers
 *   core/workers/worker_ids.c whose a worker's id is
 *   core/workers/drain.c     worker.drain
 *   core/workers/lost_workers.c which workers were lost of late, and why
 *   core/queue/dispatch.c  which worker gets which job
 *   core/engines/engines.c   engines: registered, drained, removed
 *   core/engines/placing.c   which engine a rollout gets
 *   core/engines/load.c      what run workers see of engines
 *   core/engines/migration.c rollouts that leave an overloaded engine
 *   core/engines/health.c     whether engines answer that nobody calls
 *   core/engines/policies.c  policies by name: one tokenizer and template each
 *   core/engines/policy.c    policy versions of engines, and their pauses
 *   core/clients/streams.c   numbers, heads, fetch, ack
 *   core/restore.c   the state from the ledger's rows
 *   core/clients/backup.c    ledger.backup
 *   core/status/status.c    status.get; its parts: core/status/lists.c, core/status/health.c
 *   core/check/check.c     the invariants; its parts: core/check/check_fair_queues.c, core/check/check_faults.c
 *
 * Their structures are in core/queue/jobs.h, core/engines/engines.h, core/clients/streams.h and core/workers/workers.h; what all of
 * them hang from, and what only passes through, is here.
 */
#ifndef SLUICE_BROKER_CORE_STATE_H
#define SLUICE_BROKER_CORE_STATE_H

#include "broker/core/core.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/clients/streams.h"
#include "broker/core/queue/failures.h"
#include "broker/core/workers/workers.h"
#include "broker/core/table.h"

enum {
    WORKERS_MAX = 16384,      /* beats of more workers are dropped */
    ENGINES_MAX = 1024,       /* more are refused, queue-full */
    STREAMS_MAX = 65536,      /* more are refused, queue-full */
    SWEEPS_MAX = 256,         /* stream cancels under way; more are refused, queue-full */
    SWEEP_SLICE = 4096,       /* rollouts ended in one step where any number may end */
    CYCLE_EFFECTS = 16384,    /* with so many a cycle has enough to do: sweeps wait for the next */
    EARLY_CANCELS_MAX = 100000,       /* cancels remembered before their submit (core/queue/early_cancel.c) */
    BEAT_CANCELS_SPARE = 64,  /* jobs that one beat may have cancelled beyond its worker's slots ... */
    BEAT_CANCELS_MAX = 1024,  /* ... and at the most; the rest waits for the next */
    RETRY_AFTER_MS = 1000,    /* what queue-full suggests for a cancel */
    FETCH_LIMIT = 16,         /* stream.fetch without a limit */
    HEAD_ROUNDS = 10,         /* idle streams' heads are published every so many periods */
    STREAM_NAME_MAX = 64,     /* bytes, as in messages.def */
    JOB_NAME_MAX = 140,       /* bytes, as in messages.def */
    ATTEMPTS_MAX = 1000000    /* as in messages.def; dispatches beyond are not counted */
};

/* ---- the core ---------------------------------------------------------------------- */

struct counters {
#define COUNTER(name, doc) uint64_t name;
#include "broker/core/counters.def"
#undef COUNTER
};

/* Memory for what effects point to: all of it goes at core_effects_clear. */
struct chunk {
    struct chunk *next;
    size_t used, size;
    uint8_t bytes[];
};

struct core {
    struct core_settings settings;
    uint64_t epoch, dispatches, serial;
    int64_t start_ms, now_ms, wall_ms; /* of the call in hand */
    bool has_clock;          /* the ledger's clock goes on from what was said of it: */
    int64_t clock_offset_ms; /* so much later than now_ms */
    bool failed;
    bool restoring; /* nothing but core_restore_* was called */

    struct table groups, streams_by_name, workers_by_id, clients_by_name;
    struct list streams, clients, workers, engines, policies, sweeps, forgotten;
    size_t stream_count, engine_count, engines_registered, policy_count, sweep_count, forgotten_count;

    /* LEASED jobs are in their workers' queues, QUEUED ones in their streams' queues; of
       those only the count is here. */
    struct queue queues[PLACE_COUNT][STAGE_COUNT];
    struct fair_queue fair_queues[STAGE_COUNT]; /* of clients with QUEUED jobs */
    size_t leased[STAGE_COUNT];
    struct heap expiries;                   /* live groups */
    struct heap breakers;                   /* open ones, by when something is let go to try them */
    struct heap probes;                     /* engines, by when they are probed next */
    struct table images, early_cancels, early_cancel_owners;
    struct list idle_images, failed_images; /* images */
    size_t images_waiting;                  /* init jobs blocked, of all images */
    struct heap early_cancel_times, early_cancel_owners_by_count; /* the one with the most first */
    uint64_t slots[STAGE_COUNT];            /* of workers that are neither draining nor hung */
    struct lost_workers lost_workers;
    struct id_conflicts id_conflicts;
    struct table claims; /* ids of workers and their keys from before the start, until the end of adoption */
    struct heap timers;                     /* jobs leased and delayed */
    struct heap free[STAGE_COUNT];          /* workers that may be given jobs, the freest first */
    struct worker *reserved[STAGE_COUNT];   /* NULL, or gets nothing until idle, for an isolated job */
    bool adopting;                          /* orphans still wait, until: */
    int64_t adopt_until_ms;
    enum placing placing;
    uint64_t random;                        /* the state of its own chance: no other is asked */
    uint64_t engine_states, newest_state;   /* grows with what workers are told of engines; 0: nothing was */
    uint64_t versions;                      /* the highest number of one, ... */
    char newest_version[VERSION_MAX + 1];   /* ... and its name; "": not known since the start */
    size_t paused_count;
    uint64_t turn;                          /* round-robin: whose it is */
    int64_t heads_ms;                       /* when heads are published next */
    unsigned head_round;

    uint64_t accepted, ended[OUTCOME_COUNT];
    struct usage usage[LIMIT_COUNT];
    bool is_disk_low;
    struct core_store store;
    struct {
        uint64_t count; /* since the start */
        int64_t at_ms;
        char from[129], why[257]; /* of the last one */
    } unread; /* messages of workers */
    struct counters counters;

    struct effect *effects;
    size_t effect_count, effect_capacity;
    struct effect discarded;                /* where effects go when memory is out */
    struct chunk *chunks;
    struct buffer scratch;
};

/* One message while it is handled. */
struct call {
    struct slice client;
    enum message_id id;
    const void *in;
    uint64_t tag;
    const struct core_task *task;
    uint64_t task_hash;
    const struct caller *caller;
};

/* Of the newest dispatch there was. */
uint64_t fencing_token_newest(const struct core *core);
/* Whether this broker may have handed it out, since this start or before it. */
bool fencing_token_is_possible(const struct core *core, uint64_t token);

/* Every call that may change something begins so: sets the time; false if the core has failed. */
bool core_begin(struct core *core, int64_t now_ms);

/* calloc, but for that it marks the core failed. */
void *core_alloc(struct core *core, size_t count, size_t size);
char *core_strdup(struct core *core, struct slice text); /* NULL for the empty text too */

/* Handlers, one a message. */
void handle_group_submit(struct core *core, const struct call *call);
void handle_rollout_get(struct core *core, const struct call *call);
void handle_rollout_cancel(struct core *core, const struct call *call);
void handle_stream_fetch(struct core *core, const struct call *call);
void handle_stream_ack(struct core *core, const struct call *call);
void handle_engine_add(struct core *core, const struct call *call);
void handle_engine_remove(struct core *core, const struct call *call);
void handle_engine_drain(struct core *core, const struct call *call);
void handle_policy_set(struct core *core, const struct call *call);
void handle_policy_pause(struct core *core, const struct call *call);
void handle_policy_resume(struct core *core, const struct call *call);
void handle_engine_load(struct core *core, const struct call *call);
void handle_stream_renew(struct core *core, const struct call *call);
void handle_ledger_backup(struct core *core, const struct call *call);
void handle_status_get(struct core *core, const struct call *call);
void handle_worker_drain(struct core *core, const struct call *call);
void handle_worker_beat(struct core *core, const struct call *call);
void handle_job_result(struct core *core, const struct call *call);
void handle_job_migrated(struct core *core, const struct call *call);

/* The part of core_check that looks at what may go wrong; NULL, or what is broken. */
const char *check_faults(const struct core *core, size_t blocked_inits);

/* Groups whose restored rollouts have all ended are closed. */
void restore_finish(struct core *core);
/* So many run jobs that wait for an engine are queued again, the first ones first. */
void dispatch_unblock(struct core *core, size_t most);
/* So many of those of a policy; false: there is none. */
bool dispatch_unblock_of(struct core *core, const struct policy *policy, size_t most);
/* An engine has room for one more run. */
void dispatch_room_came(struct core *core, const struct engine *engine);
/* A part of core_check: whether fair queues and clients agree with the jobs there are. */
const char *check_fair_queues(const struct core *core);
void sweeps_tick(struct core *core);
void sweeps_finish(struct core *core);

/* ---- expiry ------------------------------------------------------------------------ */

/* How long ago that was by the ledger's clock; 0 for what is still to come. */
int64_t core_age_ms(const struct core *core, uint64_t clock_ms);
/* The group, `age_ms` old, will end after so long in all (0: the default), or with its lease. */
void expiry_arm(struct core *core, struct group *group, int64_t total_ms, int64_t age_ms);
void expiries_tick(struct core *core);
/* The stream's trainer is alive: leases of its groups start anew. */
void stream_renew(struct core *core, struct stream *stream);
/* A request that may named this stream: renews it if it is its owner's. An admin only looks. */
void stream_heard(struct core *core, const struct call *call, struct stream *stream);

/* ---- early cancels ----------------------------------------------------------------- */

/* The caller's group or rollout of this name ends when it is submitted. */
void early_cancel_put(struct core *core, const struct call *call, struct slice name);
/* Ends what was cancelled ahead of a group that was submitted just now. */
void early_cancels_apply(struct core *core, const struct call *call, struct group *group);
void early_cancels_tick(struct core *core);
void early_cancels_finish(struct core *core);
/* For core_check. */
bool early_cancels_are_counted(const struct core *core);

/* ---- effects ----------------------------------------------------------------------- */

/* Good until the next push. Never NULL: without memory the core has failed and it goes nowhere. */
struct effect *effect_push(struct core *core, enum effect_kind kind);
/* Bytes that stay until core_effects_clear. */
struct slice effect_copy(struct core *core, struct slice bytes);
struct slice effect_print(struct core *core, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A message's bytes; empty if it breaks its schema (counted). */
struct slice effect_encode(struct core *core, enum message_id id, const void *message);
void effects_finish(struct core *core);

void send_client(struct core *core, struct slice client, enum message_id id, const void *message);
void send_worker(struct core *core, const struct worker *worker, enum message_id id,
                 const void *message);
void send_done(struct core *core, const struct call *call, uint64_t count);
void send_cancel(struct core *core, const struct worker *worker, struct slice job, uint64_t token);
/* `field` may be NULL; retry_after_ms 0 when trying again does not help. */
void send_refused(struct core *core, const struct call *call, enum refusal_reason reason,
                  const char *field, uint64_t retry_after_ms, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#endif
