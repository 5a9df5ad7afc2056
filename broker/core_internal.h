/*
 * core_internal.h - what the core's files share: the state, and who may change it.
 *
 *   core.c           life, which handler a message has, what is due
 *   core_effects.c   the list of effects and the memory they point into
 *   core_jobs.c      a job's places: entering, leaving, leases
 *   core_trouble.c   what went wrong with a job: budgets, back-offs, its history
 *   core_breaker.c   circuit breakers: what is set aside, and its trials
 *   core_images.c    images, their faults, and what waits for them
 *   core_expiry.c    the ends of a group's total time and of its trainer's lease
 *   core_tombs.c     cancels that came before their submit
 *   core_groups.c    groups and rollouts: their life and ends
 *   core_submit.c    group.submit
 *   core_results.c   what a result does, by stage and outcome
 *   core_share.c     which job is next: fair shares and priorities
 *   core_owners.c    whose a stream is, and what others may not do with it
 *   core_limits.c    what is used of each limit, and the overload ladder
 *   core_retention.c what trajectories are kept, how heavy and how old
 *   core_cancel.c    rollout.cancel
 *   core_workers.c   beats, reconciliation, lost workers
 *   core_drain.c     worker.drain
 *   core_losses.c    which workers were lost of late, and why
 *   core_dispatch.c  which worker gets which job
 *   core_engines.c   which engine a rollout gets
 *   core_streams.c   numbers, heads, fetch, ack
 *   core_restore.c   the state from the ledger's rows
 *   core_status.c    status.get
 *   core_check.c     the invariants; its parts: core_check_shares.c, core_check_faults.c
 *
 * A job is in exactly one place (job->place) and, but for PLACE_NONE, in the one
 * queue of that place; only core_jobs.c moves it. Streams, and the clients that own
 * them, live as long as the core.
 * What only a live group needs (struct group_work) goes when its last rollout has
 * ended, its rollouts' numbers when they are acknowledged, and its name, by which a
 * late submit is known, when FORGOTTEN_MAX other groups were acknowledged after it.
 */
#ifndef SLUICE_BROKER_CORE_INTERNAL_H
#define SLUICE_BROKER_CORE_INTERNAL_H

#include "broker/core.h"
#include "broker/core_breaker.h"
#include "broker/core_heap.h"
#include "broker/core_limits.h"
#include "broker/core_list.h"
#include "broker/core_share.h"
#include "broker/core_trouble.h"
#include "broker/table.h"

enum {
    WORKERS_MAX = 16384,      /* beats of more workers are dropped */
    ENGINES_MAX = 1024,       /* more are refused, queue-full */
    STREAMS_MAX = 65536,      /* more are refused, queue-full */
    FORGOTTEN_MAX = 100000,   /* groups remembered after all their rollouts are acknowledged */
    SWEEPS_MAX = 256,         /* stream cancels under way; more are refused, queue-full */
    SWEEP_SLICE = 4096,       /* rollouts ended in one step where any number may end */
    TOMBS_MAX = 100000,       /* cancels remembered before their submit; the oldest goes */
    BEAT_CANCELS_MAX = 1024,  /* cancels that one beat may cause; the rest waits for the next */
    RETRY_AFTER_MS = 1000,    /* what queue-full suggests for a cancel */
    FETCH_LIMIT = 16,         /* stream.fetch without a limit */
    HEAD_ROUNDS = 10,         /* idle streams' heads are published every so many periods */
    STREAM_NAME_MAX = 64,     /* bytes, as in messages.def */
    JOB_NAME_MAX = 140,       /* bytes, as in messages.def */
    ATTEMPTS_MAX = 1000000    /* as in messages.def; dispatches beyond are not counted */
};

struct call;
struct worker;

/* ---- jobs -------------------------------------------------------------------------- */

/* Where a job is. The last column is rollout.state's word for it. */
#define PLACES(X)                                                                                  \
    X(NONE, "queued")    /* its stage has not begun, or it has ended: in no queue */               \
    X(ORPHAN, "queued")  /* restored; waits for a beat to adopt it */                              \
    X(QUEUED, "queued")                                                                            \
    X(SOLO, "queued")    /* queued, to run alone on an idle worker */                              \
    X(PARKED, "queued")  /* waits for an engine, init for its image */                                   \
    X(DELAYED, "delayed") /* waits out its back-off */                                             \
    X(LEASED, "leased")

enum place {
#define X(name, wire) PLACE_##name,
    PLACES(X)
#undef X
    PLACE_COUNT
};

/* One stage of one rollout, or a group's init. 96 bytes: there may be a million. */
struct job {
    struct list link;        /* in the queue of its place */
    struct heap_node timer;  /* leased: its deadline; delayed: the end of its back-off */
    struct group *group;
    struct worker *worker;   /* leased: who has it */
    uint64_t token;          /* of its last dispatch, 0 before the first */
    uint64_t spent;          /* dispatches up to this one have failed: never adopted again */
    int64_t since_ms;        /* in this place since */
    struct trouble *trouble; /* of this stage, NULL while nothing failed */
    uint32_t seen;           /* leased: the worker's last beat that listed it */
    uint32_t attempt;
    uint16_t sample;
    uint8_t stage, place;
};

struct rollout {
    struct job job;
    struct engine *engine; /* of its last run; holds a reference */
    char *detail;          /* of its run, or NULL */
    uint64_t seq;          /* once ended; 0 if acknowledged before the broker's start */
    uint64_t wait_ms, run_ms;
    uint32_t record_bytes; /* of its run's record */
    uint8_t run_outcome;
    bool avoids_engine;    /* its last run there was an infra outcome */
    bool ended;
};

_Static_assert(sizeof(struct job) <= 96 && sizeof(struct rollout) <= 144, "a million of them");

/* Taken out of its place: into none. Its lease, timer and engine's load go with it. */
void job_leave(struct core *core, struct job *job);
/* job_leave, and job.cancel to who has it. */
void job_withdraw(struct core *core, struct job *job);
/* Into the queue that fits it (QUEUED or SOLO), at its end or its front. */
void job_queue(struct core *core, struct job *job, bool front);
void job_park(struct core *core, struct job *job);
void job_orphan(struct core *core, struct job *job);
void job_lease(struct core *core, struct job *job, struct worker *worker, uint64_t token);
/* Makes it the job of another stage, in no place, with a clean slate. */
void job_begin_stage(struct job *job, enum stage stage);
/* Into its queue after so long. */
void job_delay(struct core *core, struct job *job, int64_t wait_ms);
/* Timers: deadlines and back-offs that are due. */
void jobs_tick(struct core *core);

/* The job of this name, if that stage of it has begun and not ended; else NULL. */
struct job *job_find(struct core *core, struct slice name);
bool job_needs_engine(const struct job *job);
struct rollout *job_rollout(struct job *job); /* NULL for an init job */
/* "run:add-17/3", good until core_effects_clear. */
struct slice job_name(struct core *core, const struct job *job);

/* ---- groups and rollouts ----------------------------------------------------------- */

struct group_work {
    struct list link; /* in its stream's `live`, oldest first */
    uint64_t serial;  /* grows with each group */
    char *task, *init_layer;
    bool needs_engine, init_done;
    uint8_t priority; /* below PRIORITIES */
    uint32_t task_bytes;
    int64_t limit_ms[STAGE_COUNT];
    uint64_t init_ms, init_wait_ms;
    struct heap_node expiry;   /* in core->expiries */
    int64_t total_ms, ends_ms; /* its whole time, and when that is over */
    uint32_t lease_ms;         /* 0: none */
    uint32_t image_round;      /* of its image, when its fault was counted last */
    struct image *image;       /* NULL: not watched */
    struct job init;
    uint32_t live; /* rollouts that have not ended */
    struct rollout rollouts[];
};

struct group {
    struct heap_node ended;  /* in its stream's `ended`, by its last number ... */
    struct list forgotten;   /* ... or in core->forgotten, the first one first */
    struct stream *stream;
    struct group_work *work; /* NULL once all its rollouts have ended ... */
    uint64_t *seqs;          /* ... then their numbers; NULL once all are acknowledged */
    uint64_t task_hash;
    uint32_t samples;
    uint32_t id_len;
    char id[];
};

/* How a rollout is to end. */
struct ending {
    enum outcome outcome;
    bool trainable, has_reward;
    double reward;
    struct slice detail, record;
    uint64_t eval_ms;
};

struct slice group_id(const struct group *group);
struct group *group_find(const struct core *core, struct slice id);
/* A group whose rollouts wait for its init, not counted yet; NULL when out of memory. */
struct group *group_create(struct core *core, struct slice id, struct stream *stream,
                           uint32_t samples, uint64_t task_hash, const struct core_task *task);
/* `rollouts` of it are live from now on. */
void group_count(struct core *core, struct group *group, uint32_t rollouts);
/* All rollouts that have not ended end like this. */
void group_end(struct core *core, struct group *group, const struct ending *ending);
/* Once no rollout is live: lets go of what only live groups need. */
void group_close(struct core *core, struct group *group);
/* All its rollouts are acknowledged: only its name is kept, and that only of so many groups. */
void group_forget(struct core *core, struct group *group);
void group_destroy(struct group *group);

/* "<group>/<k>": false if there is no such rollout. */
bool rollout_find(const struct core *core, struct slice name, struct group **ret_group,
                  uint32_t *ret_sample);
void rollout_end(struct core *core, struct rollout *rollout, const struct ending *ending);
/* The end of whatever the job belongs to: one rollout, or an init job's whole group. */
void job_end(struct core *core, struct job *job, const struct ending *ending);

/* ---- workers lost of late ------------------------------------------------------------ */

enum { LOSSES_MAX = 256, WORKER_NAME_MAX = 128, HOST_NAME_MAX = 255 /* as in messages.def */ };

#define LOSS_WHYS(X)                                                                               \
    X(NO_BEAT, "no beat")                                                                          \
    X(LANE_BROKE, "its lane broke")                                                                \
    X(NO_PROGRESS, "no progress")                                                                  \
    X(OTHER_STAGE, "it came back for another stage")

enum loss_why {
#define X(name, words) LOSS_##name,
    LOSS_WHYS(X)
#undef X
};

struct loss {
    int64_t at_ms;
    enum stage stage;
    enum loss_why why;
    uint64_t jobs;         /* handed out again */
    uint64_t slots_before; /* of its stage, its own among them */
    char worker[WORKER_NAME_MAX + 1], host[HOST_NAME_MAX + 1];
};

struct losses {
    struct loss *ring; /* LOSSES_MAX, NULL before the first */
    uint64_t count;    /* ever; the last LOSSES_MAX are there */
};

/* Call it while the worker still has its jobs. One that had drained is no loss. */
void loss_note(struct core *core, const struct worker *worker, enum loss_why why);
/* The n-th newest loss not older than lost_shown_ms, or NULL. */
const struct loss *loss_nth(const struct core *core, uint64_t n);
const char *loss_words(enum loss_why why);

/* ---- workers ----------------------------------------------------------------------- */

/* What an admin told a worker. */
struct drain {
    bool told, has_grace;
    uint32_t grace_s;
};

struct worker {
    struct list link;      /* in core->workers, the one with the oldest beat first */
    struct heap_node free; /* in core->free[stage] while it may be given jobs */
    struct queue jobs;     /* leased to it */
    struct job *solo;      /* the one that runs alone, or NULL */
    char *lane, *host;
    enum stage stage;
    uint32_t slots;        /* never below what it holds */
    uint32_t beat;         /* number of its last beat */
    int64_t beat_ms, progress_ms; /* last beat; last beat with progress */
    uint64_t progress;
    struct drain drain;
    uint32_t counted;      /* its slots in core->slots */
    bool draining, stalled;
    bool hung;             /* its lane is closed until it makes progress */
    uint32_t id_len;
    char id[];
};

struct slice worker_id(const struct worker *worker);
struct worker *worker_find(const struct core *core, struct slice id);
/* Puts it among those that may be given jobs, or takes it out, as it is now. */
void worker_refresh(struct core *core, struct worker *worker);
bool worker_may_take(const struct core *core, const struct worker *worker);
/* Its lane closes, its jobs go back to their queues, it is forgotten. */
void worker_lose(struct core *core, struct worker *worker, enum loss_why why);
/* lane.drain to it, as it was told. */
void send_drain(struct core *core, const struct worker *worker);
void worker_destroy(struct core *core, struct worker *worker);
void workers_tick(struct core *core);

/* ---- engines ----------------------------------------------------------------------- */

struct engine {
    struct list link; /* in core->engines */
    uint64_t live;    /* runs leased with it */
    uint64_t refs;    /* rollouts that name it */
    bool registered;
    struct breaker breaker;
    uint32_t url_len;
    char url[];
};

struct slice engine_url(const struct engine *engine); /* empty for NULL */
/* Registers it, or only knows its name. NULL when out of memory. */
struct engine *engine_intern(struct core *core, struct slice url, bool registered);
/*
 * The registered engine with the fewest runs of those that are not set aside, another than
 * the one it avoids if there is one.
 */
struct engine *engine_choose(const struct core *core, const struct rollout *rollout);
/* Whether there is one to choose. */
bool engine_is_ready(const struct core *core);
/* Makes `engine` (may be NULL) the rollout's. */
void rollout_set_engine(struct core *core, struct rollout *rollout, struct engine *engine);

/* ---- clients: who owns streams; known for as long as they are ------------------------- */

struct client {
    struct list link; /* in core->clients */
    struct client_share shares[STAGE_COUNT];
    uint64_t used[LIMIT_COUNT];
    size_t stream_count;
    uint32_t name_len;
    char name[]; /* of its key; empty where nobody is asked for one */
};

struct slice client_name(const struct client *client);
struct client *client_find(const struct core *core, struct slice name);
struct client *client_intern(struct core *core, struct slice name); /* NULL: out of memory */
void client_destroy(struct client *client);
/* Whether the caller may read, acknowledge, cancel and feed this stream. */
bool caller_owns(const struct call *call, const struct stream *stream);
/* The same; refuses, not-allowed, if not. `field` is what named the stream, or a thing of it. */
bool owners_allow(struct core *core, const struct call *call, const struct stream *stream,
                  const char *field);
/* Whether one more stream fits, and is within what the client of this name may have. */
bool owners_have_room(const struct core *core, struct slice name);

/* ---- streams ----------------------------------------------------------------------- */

struct stream {
    struct list link; /* in core->streams */
    struct client *owner;
    struct stream_share shares[STAGE_COUNT];
    struct list live; /* groups with rollouts that have not ended, oldest first */
    struct heap ended; /* groups without, by their last number, until it is acknowledged */
    uint64_t first, head, pending;
    struct kept *kept;        /* a ring of those from first to head ... */
    size_t kept_capacity;     /* ... 0 or a power of two */
    uint64_t kept_bytes;      /* what they weigh */
    uint64_t ripe;            /* up to here they were there at the last head period */
    uint64_t expired, expired_to; /* forgotten by retention since the start; up to here */
    uint64_t under_lease; /* of those pending */
    int64_t renewed_ms;   /* when its trainer was heard of last */
    bool fresh;       /* something is new since its head was last published */
    uint32_t name_len;
    char name[];
};

struct slice stream_name(const struct stream *stream);
struct stream *stream_find(const struct core *core, struct slice name);
/* A new one belongs to `owner`. NULL when out of memory. */
struct stream *stream_intern(struct core *core, struct slice name, struct slice owner);
/* Numbers up to `seq` are acknowledged. */
void stream_forget(struct core *core, struct stream *stream, uint64_t seq);
void stream_destroy(struct stream *stream);
/* What is kept: a number's weight and time is noted, and, but for restored ones, counted. */
void retention_note(struct core *core, struct stream *stream, uint64_t seq, uint64_t bytes,
                    uint64_t ended_ms);
/* The newest number, just ended, with so many bytes of record. */
void retention_keep(struct core *core, struct stream *stream, uint64_t bytes);
/* Counts what was noted while the stream was restored. */
void retention_restore(struct core *core, struct stream *stream);
/* Numbers up to `seq` are no longer kept; seq is not beyond the head. */
void retention_drop(struct core *core, struct stream *stream, uint64_t seq);
/* Forgets what the settings do not let a stream keep. Once a head period. */
void retention_tick(struct core *core, struct stream *stream);
/* What is kept, weighed again; for checks. */
uint64_t retention_weigh(const struct stream *stream);
/* What became of a number that is no longer kept: "acknowledged", or why not. */
struct slice retention_words(struct core *core, const struct stream *stream, uint64_t seq);
void streams_tick(struct core *core);

/* ---- the core ---------------------------------------------------------------------- */

struct counters {
#define COUNTER(name, doc) uint64_t name;
#include "broker/core_counters.def"
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
    bool failed;
    bool restoring; /* nothing but core_restore_* was called */

    struct table groups, streams_by_name, workers_by_id, clients_by_name;
    struct list streams, clients, workers, engines, sweeps, forgotten;
    size_t stream_count, engine_count, engines_registered, sweep_count, forgotten_count;

    /* LEASED jobs are in their workers' queues, QUEUED ones in their streams' shares; of
       those only the count is here. */
    struct queue queues[PLACE_COUNT][STAGE_COUNT];
    struct round rounds[STAGE_COUNT];       /* of clients with QUEUED jobs */
    size_t leased[STAGE_COUNT];
    struct heap expiries;                   /* live groups */
    struct heap breakers;                   /* open ones, by when something is let go to try them */
    struct table images, tombs;
    struct list idle_images, condemned;     /* images */
    size_t images_waiting;                  /* init jobs parked, of all images */
    struct heap tomb_times;
    uint64_t slots[STAGE_COUNT];            /* of workers that are neither draining nor hung */
    struct losses losses;
    struct heap timers;                     /* jobs leased and delayed */
    struct heap free[STAGE_COUNT];          /* workers that may be given jobs, the freest first */
    struct worker *reserved[STAGE_COUNT];   /* NULL, or gets nothing until idle, for a solo job */
    bool adopting;                          /* orphans still wait, until: */
    int64_t adopt_until_ms;
    int64_t heads_ms;                       /* when heads are published next */
    unsigned head_round;

    uint64_t accepted, ended[OUTCOME_COUNT];
    struct usage usage[LIMIT_COUNT];
    bool is_disk_low;
    struct counters counters;

    struct effect *effects;
    size_t effect_count, effect_capacity;
    struct effect scrap;                    /* where effects go when memory is out */
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
void handle_stream_renew(struct core *core, const struct call *call);
void handle_status_get(struct core *core, const struct call *call);
void handle_worker_drain(struct core *core, const struct call *call);
void handle_worker_beat(struct core *core, const struct call *call);
void handle_job_result(struct core *core, const struct call *call);

/* The part of core_check that looks at what may go wrong; NULL, or what is broken. */
const char *check_faults(const struct core *core, size_t parked_inits);

/* Groups whose restored rollouts have all ended are closed. */
void restore_finish(struct core *core);
/* So many run jobs that wait for an engine are queued again, the first ones first. */
void dispatch_unpark(struct core *core, size_t most);
/* A part of core_check: whether shares and clients agree with the jobs there are. */
const char *check_shares(const struct core *core);
void sweeps_tick(struct core *core);
void sweeps_finish(struct core *core);

/* ---- expiry ------------------------------------------------------------------------ */

/* The group, `age_ms` old, will end after so long in all (0: the default), or with its lease. */
void expiry_arm(struct core *core, struct group *group, int64_t total_ms, int64_t age_ms);
void expiries_tick(struct core *core);
/* A request of a client that may named this stream: leases of its groups start anew. */
void stream_heard(struct core *core, struct stream *stream);

/* ---- tombs ------------------------------------------------------------------------- */

/* The caller's group or rollout of this name ends when it is submitted. */
void tomb_put(struct core *core, const struct call *call, struct slice name);
/* Whether that was so, and no more is. */
bool tomb_take(struct core *core, const struct call *call, struct slice name);
/* Ends what was cancelled of a group that was submitted just now. */
void tombs_meet(struct core *core, const struct call *call, struct group *group);
void tombs_tick(struct core *core);
void tombs_finish(struct core *core);

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
