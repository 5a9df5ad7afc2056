/*
 * tasks.h - what the gateway knows of Polar's tasks and their sessions, and to whom they belong. A task is a group of
 * rollouts named polar-DIGEST-N, where the digest is of its owner and its id, and N counts how often the id was used.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_TASKS_H
#define SLUICE_CLIENT_GATEWAY_POLAR_TASKS_H

#include "client/gateway/api/tail.h"
#include "client/gateway/http_call.h"
#include "client/gateway/polar/task_request.h"
#include "client/gateway/runs/runs.h"
#include "common/containers/list.h"
#include "common/containers/table.h"

enum {
    BOOK_KEEP_MS = 600000,
    BOOK_FORGET_MS = 86400000,
    BOOK_TASKS_MAX = 10000, /* of one identity */
    BOOK_BASE_SIZE = 48,    /* "polar-" and 32 digits */
    BOOK_GROUP_SIZE = 64
};

enum task_status { TASK_RUNNING, TASK_CANCELLING, TASK_COMPLETED, TASK_CANCELLED };

/* A session, which is a rollout. */
struct polar_session {
    bool has_ended, is_error, is_usable, has_reward;
    bool is_lost;       /* with the broker's earlier ledger: nobody can tell its result */
    const char *status; /* of Polar's words; once it has ended */
    double reward;
    uint64_t seq, turns, traces;
    uint64_t wait_ms, init_ms, run_ms, eval_ms;
};

struct polar_task {
    struct polar_of *of;
    char base[BOOK_BASE_SIZE], group[BOOK_GROUP_SIZE];
    unsigned number;
    char *id, *harness, *model, *callback_url, *evaluator; /* owned; NULL: none, or not known yet */
    enum task_status status;
    bool is_asked;       /* its submit is not answered yet */
    bool is_lost;        /* nor will it be: whether it came is asked for */
    bool is_known;       /* what was asked with it is */
    bool is_early;       /* enough were usable, and the others were cancelled */
    bool is_gone;        /* it may be let go */
    bool is_call_due;    /* the broker did not tell its results when it was to be called back */
    bool is_doubtful;    /* the broker was started again: whether it still knows the sessions is to be asked ... */
    unsigned doubt_next; /* ... from this one on */
    unsigned total, completed, errored, usable, early_stop;
    int64_t created_ms, updated_ms; /* since 1970 */
    int64_t had_ms;                 /* by the clock that never goes back; 0: nobody had its results */
    size_t unacked;
    struct polar_session *sessions; /* total of them */
    struct caller_ask ask;          /* for cancelling, and whether it came */
    struct list older;              /* those of the same id before it, which are let go */
};

/* The number of a trajectory in the stream, and whose it is. */
struct polar_ended {
    uint64_t seq;
    struct polar_task *task; /* NULL: of nobody that is known */
    struct list link;
};

/* Of one identity. */
struct polar_of {
    struct book *book;
    struct identity *identity;
    char stream[80];
    struct table tasks; /* by base */
    struct list gone;   /* older tasks of an id that is used again */
    struct list ended, link;
    struct tail_reader reader;
    struct caller_ask list_ask, ack;
    uint64_t acking;
    bool is_listed, is_told;                                /* of what was at work, and had ended, when it began */
    bool has_failed;                                        /* it is followed anew */
    size_t users;                                           /* calls that have it */
    int64_t idle_ms;                                        /* since when it has neither calls nor tasks */
    void (*lose)(struct polar_task *task, unsigned sample); /* of doubts.h */
};

struct outgoing;

struct book {
    struct gateway *gateway;
    struct runs *runs; /* for names of tasks that were called back */
    struct tails *tails;
    struct outgoing *outgoing;
    const struct identity *anonymous; /* of who brings no token; NULL: nobody's */
    struct list each, clients;        /* polar_of; those who hear events */
    struct table tombstones;
    struct loop_timer *sweep;
};

bool tasks_base(const struct polar_of *of, struct slice task_id, char ret[BOOK_BASE_SIZE]);
/* The newest of that id; NULL: there is none. */
struct polar_task *tasks_find(struct polar_of *of, const char *base);
/* In the place of an older one. NULL: out of memory, or there are too many. */
struct polar_task *tasks_add(struct polar_of *of, const char *base, unsigned number, unsigned total);
/* What was asked with it: an object as task_request.h keeps it. */
void task_tell(struct polar_task *task, const json_t *kept);
/* Not on disk either: its submit was refused. */
void task_drop(struct polar_task *task);
/* More sessions than were known. */
bool task_grow(struct polar_task *task, unsigned total);
void task_cancel(struct polar_task *task);
/* Nothing that its sessions came to counts any more. */
void task_begin_anew(struct polar_task *task);
const char *task_status_word(const struct polar_task *task);
bool task_is_over(const struct polar_task *task);
/* "sk-polar-UUID", which follows from the rollout's name. */
void session_id_of(const char *group, unsigned sample, char ret[48]);

/* All of an identity's. */
void polar_tasks_finish(struct polar_of *of);

#endif
