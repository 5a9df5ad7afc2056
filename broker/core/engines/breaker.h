/*
 * core/engines/breaker.h - circuit breakers, one for each engine and each image.
 *
 * closed: jobs go there. breaker_faults faults in a row open it: nothing goes there
 * for breaker_first_ms. Then exactly one job tries it. A success closes it; another
 * fault doubles the wait, up to breaker_last_ms; a trial that ends otherwise (its
 * worker was lost, it was cancelled) has said nothing, and the next job tries it.
 * What waits meanwhile is blocked, and let go one by one until a trial is under way.
 *
 * An image's faults are those of init jobs, each group's counted once. Its waiting
 * groups end as `task` when a trial says that the image itself is at fault.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_BREAKER_H
#define SLUICE_BROKER_CORE_ENGINES_BREAKER_H

#include "broker/core/core.h"
#include "broker/core/heap.h"
#include "broker/core/list.h"

struct group_work;
struct job;
struct failure;

enum {
    IMAGES_MAX = 4096,     /* known at a time; those of further groups are not watched */
    TRIAL_PERIOD_MS = 1000 /* how often another blocked job is let go to be the trial */
};

struct queue {
    struct list jobs;
    size_t count;
};

struct breaker {
    struct heap_node timer; /* in core->breakers: when a job is let go to try it */
    const struct job *trial;
    int64_t wait_ms;        /* 0: closed */
    int64_t due_ms;         /* open: the trial's time */
    uint64_t newest;        /* open: the newest dispatch there was when it opened */
    uint32_t faults;        /* in a row */
    bool of_image;
};

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRIAL };

/* What a fault did. */
enum breaker_news {
    BREAKER_COUNTED, /* it is still closed */
    BREAKER_BROKE,   /* it has opened */
    BREAKER_LATE,    /* it is open: a dispatch from before tells what is known */
    BREAKER_FAILED   /* its trial failed */
};

enum breaker_state breaker_state(const struct core *core, const struct breaker *breaker);
const char *breaker_state_word(enum breaker_state state);
/* Whether a job may go there now. */
bool breaker_lets(const struct core *core, const struct breaker *breaker);
/* Of the dispatch with that token. */
enum breaker_news breaker_fault(struct core *core, struct breaker *breaker, uint64_t token);
/* It works: what waits is let go. */
void breaker_close(struct core *core, struct breaker *breaker);
/* It is out of use: nothing is known of it any more. */
void breaker_reset(struct core *core, struct breaker *breaker);
/* A job begins, ends there. `breaker` may be NULL. */
void breaker_enter(struct core *core, struct breaker *breaker, const struct job *job);
void breaker_leave(struct core *core, struct breaker *breaker, const struct job *job);
/* Something waits for it. */
void breaker_await(struct core *core, struct breaker *breaker);
void breakers_tick(struct core *core);

/* The one this job's dispatch stands for: its engine's or its image's, or NULL. */
struct breaker *job_breaker(struct job *job);
/* Whether the job may be handed out as far as engines and images go. */
bool job_may_start(const struct core *core, const struct job *job);
/* Takes the failure to what it blames; true if that is out of order, and the job is not at fault. */
bool job_blames(struct core *core, struct job *job, const struct failure *failure);

/* ---- images -------------------------------------------------------------------------- */

struct image {
    struct list idle;      /* in core->idle_images while no live group has it, the oldest first */
    struct list failed;    /* in core->failed_images while groups that wait for it are being ended */
    struct breaker breaker;
    struct queue waiting;  /* init jobs, blocked */
    uint64_t groups;       /* live ones that have it */
    uint32_t round;        /* of counting faults: a group's counts once in each */
    int64_t failed_ms;     /* what has waited since before ends like this: */
    char *verdict;
    uint32_t name_len;
    char name[];
};

struct slice image_name(const struct image *image);
/* Makes it the group's. None for a task that names none, and when too many are known. */
void image_join(struct core *core, struct group_work *work, struct slice name);
/* The group has ended. */
void image_part(struct core *core, struct group_work *work);
/* One of its groups' init has ended well. */
void image_works(struct core *core, struct image *image);
void image_let_one(struct core *core, struct image *image);
void image_let_all(struct core *core, struct image *image);
/* Ends what waits for failed images, a slice at a time. */
void images_tick(struct core *core);
void images_finish(struct core *core);

#endif
