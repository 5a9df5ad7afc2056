/*
 * job.h - one job in a worker, and the contract of a kind of task: three functions of which a
 * worker calls the one of its stage. A kind is one file in kinds/ and one row in kinds.c.
 *
 * A stage function runs in a fiber, awaits as it likes, keeps nothing afterwards, and fills in
 * job->result; the worker sends it and keeps it until it is acknowledged. A cancelled stage just
 * returns. Its time:
 *
 *     prepare (layers, sandbox) | work: the stage's limit | pack, and a look whether all is whole
 *
 * Preparing is not the task's doing: JOB_PREPARE_MS of it do not count against the limit. The
 * limit runs from job_begin_work; when it passes, the kind says what that means (run: agent; init
 * and eval: task). Packing and that look have a time of their own. A job that has not ended JOB_OVERDUE_MS after
 * all that hangs in a file system and is given up. In all this is less than the broker waits
 * beyond the limit (deadline_grace_ms) before it takes the job away.
 */
#ifndef SLUICE_WORKERS_JOBS_JOB_H
#define SLUICE_WORKERS_JOBS_JOB_H

#include "schemas/messages/message.h"
#include "schemas/task/task.h"
#include "schemas/trajectory/verdict.h"
#include "workers/engines/engine.h"
#include "workers/engines/migration.h"
#include "workers/images/images.h"
#include "workers/jobs/job_session.h"
#include "workers/layers/layer.h"
#include "workers/network/grants.h"
#include "workers/sandbox/sandbox.h"

enum { JOB_PREPARE_MS = 8000, JOB_PACK_MS = 20000, JOB_OVERDUE_MS = 1000 };

struct search;
struct sessions;
struct cache_watch;
struct handlers;
struct stage_sandbox;
struct task_dirs;
struct harness_dirs;
struct image_names;
struct parents;

/* What a worker's jobs share. */
struct job_context {
    struct loop *loop;
    struct http *http;
    struct engines *engines;
    struct spawner *spawner;
    struct images *images;
    struct layers layers;
    const struct cache_watch *cache_watch;   /* NULL: nobody looks */
    struct search *search;                   /* NULL: none */
    struct sessions *sessions;               /* NULL: it takes none */
    const struct task_dirs *task_dirs;       /* whose files tasks may name; NULL: none */
    const struct harness_dirs *harness_dirs; /* what works on tasks; NULL: what their images have */
    const struct image_names *image_names;   /* what Dockerfiles call images; NULL: none is known */
    const struct grants *grants;             /* what tasks may reach; NULL: nothing */
    struct handlers *handlers;               /* the worker's; NULL: none */
};

/* Of a run: the evaluation that followed in the agent's own sandbox, whose verdict is job_result's. */
struct job_evaluation {
    bool is_done; /* else an eval job follows */
    enum outcome outcome;
    char *detail; /* NULL: not done */
    uint64_t ms;
};

struct job_result {
    enum outcome outcome;
    enum fault fault; /* task and infra: what is to blame, where that is known */
    char detail[2048];
    struct verdict
        verdict; /* eval, and a run that was evaluated: its reward counts with outcome ok only; `why` is unused */
    struct layer layer; /* init, run */
    double raw_reward;  /* eval: the evaluator's, where has_raw_reward: the task's shaping made another of it */
    bool has_raw_reward, filtered;                  /* eval; filtered: shaping leaves the rollout out */
    struct job_evaluation evaluation;               /* run */
    uint64_t sampled_tokens, turns;                 /* run */
    struct buffer traces;                           /* run: how many, by why they began; may be empty */
    const struct spent *spent;                      /* of its fiber; NULL: it is not counted */
    uint64_t oldest_version;                        /* run: the lowest number of a version of a turn; 0: none had one */
    bool truncated;                                 /* run: a limit on tokens cut it off */
    char *answer;                                   /* run; may be NULL; cut to 65,536 bytes of UTF-8 when sent */
    struct buffer record;                           /* run, eval with a teacher: encoded; may be empty */
    char tokenizer_digest[80], template_digest[80]; /* run: of all its traces; "": nothing was sampled */
};

struct job {
    const struct job_context *context;
    struct msg_job_start start; /* borrows from bytes, or from what its owner keeps instead; its task is there */
    struct buffer bytes;
    const struct task *task;
    struct job_result result;
    struct engine_migration migration; /* run */
    struct job_session session;        /* run */
    int64_t prepared_by_ms, limit_ms;  /* the stage's clock */
    const struct parents *built;       /* eval: the layers of eval.build; NULL: it has none */
    bool agent_goes_on;                /* ... and has it back then */
    struct stage_sandbox *agents; /* run, while it is evaluated there: the agent's sandbox, which its evaluator takes */
};

struct task_kind {
    const char *name, *doc;
    void (*init)(struct job *job);
    void (*run)(struct job *job);
    void (*eval)(struct job *job);
};

/* The stage's clock, in its fiber: it starts, with deadlines as above; its work begins. */
void job_begin(struct job *job, enum stage stage);
void job_begin_work(struct job *job);

/* Sets outcome and detail; nothing in particular is to blame. */
void job_set_outcome(struct job *job, enum outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* As job_set_outcome; `fault` is to blame (docs/contributing/faults.md). */
void job_set_fault(struct job *job, enum outcome outcome, enum fault fault, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
