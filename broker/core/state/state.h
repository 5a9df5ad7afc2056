/*
 * core/state/state.h - the state, and what all files of the core use of it: names, finds, times. No decision.
 *
 * Calls go down and never up: docs/contributing/design.md has the picture, tests/system/structure/test_circles.py
 * the floors of all files.
 *
 *   core.c       the entries: what broker/io calls; which handler a message has; what is due
 *   handlers     one a message, in clients/, engines/, queue/, workers/ and status/
 *   settle.c     what was noted on engines and images in a step, and what follows from it
 *   dispatch.c   who gets what; failures.c, groups.c: budgets and ends; jobs.c: the places of jobs
 *   effects.c    what leaves the core
 *   state.c      this
 *
 * Structures are in job.h, engine.h, stream.h, need.h and worker.h; what all of them hang from is here, and what only
 * passes through in interface.h.
 */
#ifndef SLUICE_BROKER_CORE_STATE_STATE_H
#define SLUICE_BROKER_CORE_STATE_STATE_H

#include "broker/core/state/engine.h"
#include "broker/core/state/interface.h"
#include "broker/core/state/job.h"
#include "broker/core/state/metrics.h"
#include "broker/core/state/need.h"
#include "broker/core/state/sampler.h"
#include "broker/core/state/settings.h"
#include "broker/core/state/stream.h"
#include "broker/core/state/worker.h"
#include "common/containers/table.h"
#include "schemas/messages/message_max.h"

enum {
    WORKERS_MAX = 16384,        /* beats of more workers are dropped */
    ENGINES_MAX = 1024,         /* more are refused, queue-full */
    STREAMS_MAX = 65536,        /* more are refused, queue-full */
    SWEEPS_MAX = 256,           /* stream cancels under way; more are refused, queue-full */
    SWEEP_SLICE = 4096,         /* rollouts ended in one step where any number may end */
    CYCLE_EFFECTS = 16384,      /* with so many a cycle has enough to do: sweeps wait for the next */
    EARLY_CANCELS_MAX = 100000, /* cancels remembered before their submit (core/clients/early_cancel.c) */
    BEAT_CANCELS_SPARE = 64,    /* jobs that one beat may have cancelled beyond its worker's slots ... */
    BEAT_CANCELS_MAX = 1024,    /* ... and at the most; the rest waits for the next */
    RETRY_AFTER_MS = 1000,      /* what queue-full suggests for a cancel */
    FETCH_LIMIT = 16,           /* stream.fetch without a limit */
    HEAD_ROUNDS = 10,           /* idle streams' heads are published every so many periods */
    STREAM_NAME_MAX = MESSAGE_MAX(group_submit, stream),
    JOB_NAME_MAX = MESSAGE_MAX(job_start, job),
    ATTEMPTS_MAX = MESSAGE_MAX(job_start, attempt) /* dispatches beyond are not counted */
};

/* ---- the core ---------------------------------------------------------------------- */

struct counters {
#define COUNTER(name, doc) uint64_t name;
#include "broker/core/state/counters.def"
#undef COUNTER
};

/* Memory for what effects point to. */
struct chunk {
    struct chunk *next;
    size_t used, size;
    uint8_t bytes[];
};

struct core {
    struct core_settings settings;
    uint64_t epoch, dispatches, serial;
    uint64_t start_id;                 /* 0: not told */
    int64_t start_ms, now_ms, wall_ms; /* of the call in hand */
    bool has_clock;                    /* the ledger's clock goes on from what was said of it: */
    int64_t clock_offset_ms;           /* so much later than now_ms */
    bool failed;
    bool restoring;                 /* nothing but core_restore_* was called ... */
    struct group *told[TABLE_MANY]; /* ... of these groups last: so many of them are not in `groups` yet */
    size_t told_count;
    struct group *told_last;

    struct table groups, streams_by_name, workers_by_id, clients_by_name;
    struct list streams, clients, workers, engines, policies, sweeps, forgotten;
    size_t stream_count, engine_count, engines_registered, policy_count, sweep_count, forgotten_count;
    size_t forgotten_taken; /* of these, when effects were taken last */

    /* LEASED jobs are in their workers' queues, QUEUED ones in their streams' queues; of
       those only the count is here. */
    struct queue queues[PLACE_COUNT][STAGE_COUNT];
    struct fair_queue fair_queues[STAGE_COUNT]; /* of clients with QUEUED jobs */
    size_t leased[STAGE_COUNT];
    uint64_t live_by_init[PLACE_COUNT]; /* rollouts that have not ended, by where their groups' init jobs are */
    struct heap expiries;               /* live groups */
    struct heap breakers;               /* open ones, by when something is let go to try them */
    struct heap probes;                 /* engines, by when they are probed next */
    struct table images, early_cancels, early_cancel_owners;
    struct list idle_images, failed_images;    /* images */
    struct list noted_engines, working_images; /* what core/settle.c has to do */
    struct list samplers, noted_samplers;
    size_t sampler_count;
    struct heap sampler_waits;                                    /* requests for batches, by when they are over */
    size_t images_waiting;                                        /* init jobs blocked, of all images */
    struct heap early_cancel_times, early_cancel_owners_by_count; /* the one with the most first */
    uint64_t slots[STAGE_COUNT];                                  /* of workers that are neither draining nor hung */
    struct lost_workers lost_workers;
    struct id_conflicts id_conflicts;
    struct table progress;         /* of leased jobs, by the tokens of their dispatches (core/queue/job_progress.h) */
    struct table sessions;         /* of leased jobs, likewise (core/sessions/sessions.h); ... */
    struct heap session_waits;     /* ... and who waits to be told of one, by when they are answered */
    struct table watches;          /* rollouts that somebody watches (core/watches/watches.h) */
    struct table claims;           /* ids of workers and their keys from before the start, until the end of adoption */
    struct heap timers;            /* jobs leased and delayed */
    struct heap free[STAGE_COUNT]; /* workers that may be given jobs, the freest first */
    struct need *needs[NEEDS_MAX + 1];          /* by number, from 1; NULL: none has it */
    struct list waiting_needs[STAGE_COUNT];     /* those that jobs wait for */
    struct list offers[STAGE_COUNT];            /* of workers; ... */
    uint8_t offers_taken[(OFFERS_MAX + 7) / 8]; /* ... the numbers they have */
    struct worker *reserved[STAGE_COUNT];       /* NULL, or gets nothing until idle, for an isolated job */
    bool adopting;                              /* orphans still wait, until: */
    int64_t adopt_until_ms;
    enum placing placing;
    uint64_t random;                      /* the state of its own chance: no other is asked */
    uint64_t engine_states, newest_state; /* grows with what workers are told of engines; 0: nothing was */
    uint64_t versions;                    /* the highest number of one, ... */
    char newest_version[VERSION_MAX + 1]; /* ... and its name; "": not known since the start */
    size_t paused_count;
    uint64_t turn;    /* round-robin: whose it is */
    int64_t heads_ms; /* when heads are published next */
    unsigned head_round;

    uint64_t accepted, ended[OUTCOME_COUNT];
    struct usage usage[QUOTA_COUNT];
    bool is_disk_low;
    struct core_store store;
    struct {
        uint64_t count; /* since the start */
        int64_t at_ms;
        char from[WORKER_NAME_MAX + 1], why[257]; /* of the last one */
    } unread;                                     /* messages of workers */
    struct counters counters;
    struct metrics metrics;
    struct core_process process;

    struct effect_list effects;
    struct effect discarded; /* where effects go when memory is out */
    uint64_t lane_changes;   /* LANE_OPEN and LANE_CLOSE, ever */
    size_t live_bytes;       /* of SEND_EVENTS, in these effects */
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

/* ---- memory and time ----------------------------------------------------------------- */

/* calloc, but for that it marks the core failed. */
void *core_alloc(struct core *core, size_t count, size_t size);
char *core_strdup(struct core *core, struct slice text); /* NULL for the empty text too */

/* Durations of which there are many: more than 49 days are 49 days. */
uint32_t core_ms(uint64_t ms);
/* How long ago that was by the ledger's clock; 0 for what is still to come. */
int64_t core_age_ms(const struct core *core, uint64_t clock_ms);
/* The stream's trainer is alive: leases of its groups start anew. */
void stream_renew(struct core *core, struct stream *stream);
/* A request that may named this stream: renews it if it is its owner's. An admin only looks. */
void stream_heard(struct core *core, const struct call *call, struct stream *stream);

/* Of the newest dispatch there was. */
uint64_t fencing_token_newest(const struct core *core);
/* Whether this broker may have handed it out, since this start or before it. */
bool fencing_token_is_possible(const struct core *core, uint64_t token);

/* ---- names and finds: NULL where there is none --------------------------------------- */

struct slice worker_id(const struct worker *worker);
struct slice worker_key(const struct worker *worker);
struct slice engine_url(const struct engine *engine); /* empty for NULL */
struct slice image_name(const struct image *image);
struct slice stream_name(const struct stream *stream);
struct slice client_name(const struct client *client);
struct slice group_id(const struct group *group);
/* An empty one is that of the usual policy, "default". */
struct slice policy_name(struct slice name);

struct worker *worker_find(const struct core *core, struct slice id);
struct engine *engine_find(const struct core *core, struct slice url);
struct policy *policy_find(const struct core *core, struct slice name);
struct client *client_find(const struct core *core, struct slice name);
struct stream *stream_find(const struct core *core, struct slice name);
struct group *group_find(const struct core *core, struct slice id);
/* "<group>/<k>": false if there is no such rollout. */
bool rollout_find(const struct core *core, struct slice name, struct group **ret_group, uint32_t *ret_sample);
/* The job of this name, if that stage of it has begun and not ended; else NULL. */
struct job *job_find(struct core *core, struct slice name);

/* ---- jobs and engines ---------------------------------------------------------------- */

/* What it has gone through, to be changed: of a job that was dispatched; or made if there is none, NULL when out of
 * memory. */
struct job_course *job_course(struct job *job);
struct job_course *job_course_open(struct core *core, struct job *job);
struct rollout *job_rollout(struct job *job); /* NULL for an init job */
/* Of a rollout of a live group, folded or not: has it ended, and which job is it at, its group's init or its own? */
bool rollout_has_ended(const struct group_work *work, uint32_t sample);
struct job *rollout_job(struct group_work *work, uint32_t sample);
/* Its number once it has ended; 0: it has not, or was acknowledged and its number is not known any more. */
uint64_t rollout_seq(const struct group *group, uint32_t sample);
/* Whose engines its stage needs, and the one that it is, or was last, on in that stage; NULL: none. */
struct policy *job_policy(const struct job *job);
struct engine *job_engine(const struct job *job);
bool job_needs_engine(const struct job *job);
/* What its stage needs of handlers; NULL: nothing. */
struct need *job_need(const struct core *core, const struct job *job);
bool engine_is_paused(const struct engine *engine);
/* Whether its probes go unanswered. */
bool engine_is_silent(const struct engine *engine);
/* For core/settle.c, at the end of the step. */
void engine_note(struct core *core, struct engine *engine, enum engine_note note);

#endif
