/* world.h - inside of simulate.h: the fleet while it is simulated. One thread; all of it is the world's. */
#ifndef SLUICE_BROKER_SIMULATE_WORLD_H
#define SLUICE_BROKER_SIMULATE_WORLD_H

#include "broker/simulate/agenda.h"
#include "broker/simulate/gauge.h"
#include "broker/simulate/prefix.h"
#include "broker/simulate/simulate.h"
#include "broker/simulate/trainer/trainer.h"

#define NOBODY UINT32_MAX /* of indices */

enum event { EVENT_JOB_ENDS, EVENT_CALL, EVENT_PROMPT_READ, EVENT_SERVER, EVENT_ARRIVAL, EVENT_SECOND, EVENT_ASK };

/* A job that a worker has. Its index is what events name. */
struct job {
    enum stage stage;
    uint32_t group, sample, worker, server;
    uint32_t next;        /* free job, or call that waits for the same server */
    uint64_t token, held; /* held: tokens of its context, as its worker sees it ... */
    bool is_seen;         /* ... from its first call on */
    bool has_run;         /* nothing is left to it but to tell the core */
    double began_s, called_s;
    struct walk walk; /* run */
    struct turn turn; /* the call in hand, or the last one */
    struct prefix prefix;
    double tools_s;         /* setup and tools so far */
    uint64_t sampled, read; /* tokens so far; read: of prompts, that were not cached */
};

/* What a server's cache has of a group's prompt. */
struct group_prefix {
    struct prefix prefix;
    uint32_t server;
    struct group_prefix *next;
};

struct group {
    double ready_s; /* submitted; then init has ended */
    struct group_prefix *prefixes;
    uint32_t runs_left;
    uint32_t task, attempt; /* its prompt, and how often that was submitted before */
    uint32_t ended, solved; /* rollouts, as a trainer by hand sees them */
    uint32_t next_carried;
    enum group_state state;
    bool is_asked;            /* a run of it began ... */
    uint64_t version, tokens; /* ... under this version */
};

/* An engine. Calls that sample are given tokens alike, so each ends when `given` has reached its own mark. */
struct server {
    struct agenda sampling;
    double given, changed_s, next_s; /* next_s: of its only event that counts */
    double read_until_s;             /* prompts are read one after the other */
    uint32_t calls, first_waiting, last_waiting;
    struct prefix_cache cache;
    uint64_t runs, tokens; /* as workers see them */
    bool changed;          /* since the last load report */
};

/* Sums over runs that ended. */
struct runs {
    uint64_t count, sampled, read; /* tokens */
    double run_s, tools_s;
};

/* Sums over inits and evals that began. */
struct sums {
    uint64_t inits, evals;
    double init_s, eval_s;
};

/* At an end of the measured time. */
struct mark {
    double at_s, held_s[STAGE_COUNT], sampling_s, sampled, prompted, read;
    uint64_t ended, batches;
    double learning_s;
    struct tally tally;
};

struct world {
    const struct fleet *fleet;
    const struct load *load;
    struct core *core;
    struct core_task task;
    double now_s;
    struct agenda agenda;
    bool failed; /* out of memory */
    struct job *jobs;
    uint64_t job_count;
    uint32_t free_job;
    struct group *groups;
    double *ran_s; /* of each rollout: when its run ended */
    struct server *servers;
    uint64_t submitted, tasks; /* groups; prompts of theirs that are no others' */
    uint64_t ended, cancelled; /* rollouts */
    uint64_t seq, acked, next_load;
    bool measures;
    struct level held[STAGE_COUNT], sampling; /* sampling: calls */
    double sampled;                           /* tokens, by all servers */
    double prompted, read;
    struct spread waits[STAGE_COUNT], first_token;
    struct trainer trainer;
    struct sums sums;
    struct runs runs, measured_runs; /* all; those that ended while it was measured */
};

/* ---- the world, and what it says to the core (world.c) --------------------------------------------- */

/* What the core wants done then, world_settle does. */
bool world_open(struct world *world, const struct fleet *fleet, const struct load *load);
void world_close(struct world *world);
/* To the core, from a client's route, or "" for a worker. */
void world_say(struct world *world, const char *route, enum message_id id, const void *in);
/* A group of a new prompt, or of that of an earlier one. */
void world_submit(struct world *world);
void world_submit_again(struct world *world, const struct group *before);
void world_event(struct world *world, double at_s, enum event event, uint32_t what);
/* The group's prompt goes from all caches. */
void prompt_forget(struct world *world, struct group *group);
/* The number behind a letter or two: "r12", "http://e7". */
uint32_t world_number(struct slice text);
/* With it the names of the stage's workers begin. */
char world_letter(enum stage stage);
/* Its time, as the core is told it. */
int64_t world_ms(const struct world *world);
/* "g12" */
void group_name(uint64_t number, char ret[24]);

/* ---- the engines (calls.c) ---------------------------------------------------------------- */

void call_begin(struct world *world, uint32_t job);
void call_read(struct world *world, uint32_t job);
/* The run is cancelled: it leaves its engine, and what it has sampled of a call in hand counts. */
void run_cancel(struct world *world, uint32_t job);
void server_due(struct world *world, uint32_t server, double at_s);
/* Brings what it has sampled up to now. */
void server_advance(struct world *world, struct server *server);

/* ---- workers (sim_workers.c) --------------------------------------------------------------- */

/* Does what the core wants done now. */
void world_settle(struct world *world);
/* The job has ended; it is gone afterwards. */
void world_end_job(struct world *world, uint32_t job);
/* What happens once a second: load reports, the trainer's acknowledgement, the core's own clock. */
void world_second(struct world *world);

#endif
