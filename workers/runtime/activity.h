/*
 * activity.h - what a job's fiber is at, in words for people: the turn, the last tool, what it waits for, and the phase
 * that it is in, with the time that each has taken. Whoever works in the fiber says so where it happens; the worker
 * tells the broker of those that changed (service/load_reports.h), and who watches of each phase (live/live.h). In a
 * fiber without one, and outside of fibers, nothing is noted.
 *
 * Several fibers may work for one job, so phases are counted: it is in the innermost that one of them is in, which is
 * the last of the table; but one that waits for an engine does not hide another that samples.
 */
#ifndef SLUICE_WORKERS_RUNTIME_ACTIVITY_H
#define SLUICE_WORKERS_RUNTIME_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schemas/messages/message_max.h"
#include "workers/runtime/spent.h"

struct live;
struct live_ear;
struct live_turns;
struct record;

/* The outermost first; docs/live.md says what each is. */
#define ACTIVITY_PHASES(X)                                                                                             \
    X(SANDBOX, "sandbox") /* what no other is */                                                                       \
    X(AGENT, "agent")                                                                                                  \
    X(EVALUATING, "evaluating")                                                                                        \
    X(PACKING, "packing")                                                                                              \
    X(WAITING, "waiting")                                                                                              \
    X(TOOL, "tool")                                                                                                    \
    X(SAMPLING, "sampling")                                                                                            \
    X(ENGINE, "engine")

enum activity_phase {
#define X(name, word) PHASE_##name,
    ACTIVITY_PHASES(X)
#undef X
        PHASE_COUNT
};

enum { ACTIVITY_PAST_MAX = 64, ACTIVITY_OF_MAX = 31 };

/* A phase that is over. */
struct activity_past {
    int64_t since_ms;
    uint32_t turn;
    uint8_t phase;
    char of[ACTIVITY_OF_MAX + 1]; /* cut where it is longer */
};

enum { ACTIVITY_TOOL_MAX = MESSAGE_MAX(job_progress, tool), ACTIVITY_WHY_MAX = MESSAGE_MAX(job_progress, why) };

struct activity { /* all zero at first */
    uint64_t changes;
    uint32_t turn;                    /* from 1; 0: before the first */
    char tool[ACTIVITY_TOOL_MAX + 1]; /* the last one called; "": none yet */
    char why[ACTIVITY_WHY_MAX + 1];   /* why it does not get on; "": it does */
    struct spent spent;

    enum activity_phase phase;
    int64_t began_ms, since_ms;    /* the job; this phase */
    int64_t spent_ms[PHASE_COUNT]; /* but for the last phases, which are these: */
    struct activity_past *past;    /* a ring of past_room, its own; at last of ACTIVITY_PAST_MAX */
    uint32_t past_room;
    uint32_t past_count;          /* ever */
    uint32_t within[PHASE_COUNT]; /* how many fibers are */
    const char *evaluator;        /* its name, while it evaluates; borrowed */
    void (*phase_changed)(struct live *live, const struct activity *activity); /* NULL: nobody watches */

    /* What there is to see of its work: its own while it is there, else NULL. */
    const struct record *record;
    const struct live_turns *turns; /* beyond the record's traces */
    struct live *live;              /* who watches; NULL: nobody does */
    struct live_ear *ears;          /* turns that are sampled while somebody watches */
    uint32_t samplings;             /* turns that were heard so far */
};

/* Frees what is its own; what it borrows is its owner's. */
void activity_finish(struct activity *activity); /* but for its `spent` */
/* The job begins. */
void activity_begin(struct activity *activity, int64_t now_ms);
const char *activity_phase_word(enum activity_phase phase);
/* What there is to say of the phase that it is in: a name, a reason; "": nothing. */
const char *activity_phase_of(const struct activity *activity);

/* The phases that are over, of those that are kept, from the oldest on; NULL: there are no more. */
const struct activity_past *activity_past(const struct activity *activity, size_t nth);

/* Of the current fiber; NULL: it has none. */
struct activity *activity_current(void);
void activity_turn(uint64_t turn);
void activity_tool(const char *name);
void activity_wait(const char *format, ...) __attribute__((format(printf, 1, 2)));
void activity_go_on(void); /* what it waited for is over */

/* Who evaluates; the name must last. */
void activity_evaluator(const char *name);

/* The fiber is in this phase, too, until it leaves it; they nest. */
void activity_enter(enum activity_phase phase);
void activity_leave(enum activity_phase phase);

#endif
