/*
 * fiber.h - straight-line code on the event loop. A fiber is a function with a stack
 * of its own (256 KiB, committed as used) that gives way wherever it awaits; thousands
 * live in one thread. Only inside a fiber may the await_* calls be used.
 *
 * Cancelling: fiber_cancel makes the await in hand, and every later one, return
 * -ECANCELED; the fiber cleans up and returns by itself. Code that must await while
 * cleaning up brackets it with fiber_shield.
 */
#ifndef SLUICE_WORKERS_RUNTIME_FIBER_H
#define SLUICE_WORKERS_RUNTIME_FIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "common/loop/loop.h"

struct activity;
struct fiber;

/*
 * Starts `run` at the loop's next turn. `ended` (may be NULL) is called on the loop's
 * stack after it returned; the fiber is gone then. NULL when out of memory.
 */
struct fiber *fiber_start(struct loop *loop, void (*run)(void *arg), void (*ended)(void *arg), void *arg);
void fiber_cancel(struct fiber *fiber);

/*
 * Gives back, of this thread's fibers that have awaited the same since the call before, the pages of their stacks that
 * lie deeper than they are now. For who calls it about once a second.
 */
void fibers_trim(void);

struct fiber *fiber_current(void); /* NULL on the loop's own stack */
struct loop *fiber_loop(void);     /* of the current fiber */
bool fiber_is_cancelled(void);     /* the current fiber */
/* Where what it is at is noted (activity.h), borrowed; NULL, as at first: nowhere. */
void fiber_set_activity(struct fiber *fiber, struct activity *activity);
struct activity *fiber_activity(const struct fiber *fiber);
/* While shielded (nests), awaits ignore a cancel. */
void fiber_shield(bool on);

/*
 * Deadlines (loop_now_ms) of the current fiber's awaits, a stack: past the top one they return
 * -ETIMEDOUT. `push` never lets an await last longer than the one below does; `lift` puts the
 * given time, or none at all (0), in the place of whatever lies below, for cleaning up. Each is
 * undone by one `pop`, but for what is left when the fiber ends.
 */
void fiber_push_deadline(int64_t deadline_ms);
void fiber_lift_deadline(int64_t deadline_ms);
void fiber_pop_deadline(void);
int64_t fiber_deadline(void); /* 0: none */
bool fiber_is_late(void);     /* the deadline has passed */
/* All deadlines of a fiber are so much later; what it was given in all. */
void fiber_give_time(struct fiber *fiber, int64_t ms);
int64_t fiber_given_time(const struct fiber *fiber);
/* The current fiber works for another: that one's top deadline holds for it, and it notes what it is at there. */
void fiber_work_for(const struct fiber *other);
/*
 * Another fiber's top deadline, where it has one, is over now: its await in hand, or its next,
 * returns -ETIMEDOUT.
 */
void fiber_expire(struct fiber *fiber);

/* Returns the ready events (> 0), -ETIMEDOUT or -ECANCELED. events as in loop_watch. */
int await_fd(int fd, uint32_t events, int64_t timeout_ms); /* -1: only the fiber's deadline */
/* 0 after the time, -ETIMEDOUT at the deadline, -ECANCELED. */
int await_sleep(int64_t ms);
/*
 * Parks until fiber_wake; 0, -ETIMEDOUT or -ECANCELED. A wake before the park is kept.
 */
int await_wake(int64_t timeout_ms);
/* The same until a time of loop_now_ms: 0 then, too; negative errno with a sentence where the fiber is
 * cancelled or past a deadline of its own. */
int await_until(int64_t until_ms, struct fail *fail);
/* Gives all others a turn, for what may go on without ever having to wait; fails as await_until. */
int await_turn(struct fail *fail);
void fiber_wake(struct fiber *fiber); /* from a callback or another fiber; NULL-safe */

#endif
