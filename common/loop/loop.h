/*
 * loop.h - one thread's event loop: file descriptors (epoll) and timers (a heap).
 * Callbacks run inside loop_run, one at a time, and never block. Fibers (fiber.h)
 * are what most code uses; callbacks are for what has no straight line (curl, ZeroMQ).
 */
#ifndef SLUICE_COMMON_LOOP_LOOP_H
#define SLUICE_COMMON_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_watch; /* one fd, owned by the loop until loop_unwatch */
struct loop_timer; /* one shot, owned by the loop until it fired or loop_cancel */

struct loop *loop_create(void);
void loop_destroy(struct loop **loop);

/*
 * events: EPOLLIN, EPOLLOUT; level-triggered. The fd stays the caller's, who unwatches it before
 * closing it. NULL with errno: out of memory, or EPERM for an fd that is always ready (a file).
 */
struct loop_watch *loop_watch(struct loop *loop, int fd, uint32_t events, void (*ready)(void *arg, uint32_t events),
                              void *arg);
bool loop_rewatch(struct loop *loop, struct loop_watch *watch, uint32_t events);
/* NULL-safe; may be called from any callback, also the watch's own. */
void loop_unwatch(struct loop *loop, struct loop_watch **watch);

struct loop_timer *loop_after(struct loop *loop, int64_t delay_ms, void (*due)(void *arg), void *arg);
/* NULL-safe; after a timer fired its pointer is gone: set it NULL in the callback. */
void loop_cancel(struct loop *loop, struct loop_timer **timer);

/*
 * Runs `run` once at the loop's next turn. The caller owns `soon` (zeroed before its first use),
 * which must stay until it ran or loop_unpost; posting it again before that does nothing. Never
 * fails.
 */
struct loop_soon {
    struct loop_soon *next, **link; /* link: what points here, NULL when not posted */
    void (*run)(void *arg);
    void *arg;
};
void loop_post(struct loop *loop, struct loop_soon *soon);
void loop_unpost(struct loop *loop, struct loop_soon *soon);

/* Called once before each wait (ZeroMQ sockets are edge-triggered: re-read them here). */
void loop_set_prepare(struct loop *loop, void (*prepare)(void *arg), void *arg);

void loop_run(struct loop *loop); /* until loop_stop */
void loop_stop(struct loop *loop);
/* Grows with every turn of the loop: the beat's proof that the thread lives. */
uint64_t loop_progress(const struct loop *loop);

#endif
