#include "workers/runtime/fiber.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/fiber_sanitize.h"
#include "workers/runtime/switch.h"

enum {
    STACK_BYTES = 256 * 1024,
    GUARD_BYTES = 4096 * 16, /* a page of any architecture */
    STACKS_KEPT = 256,
    DEADLINES_NESTED = 16
};

struct fiber {
    struct loop *loop;
    void (*run)(void *arg);
    void (*ended)(void *arg);
    void *arg;
    uint8_t *stack; /* the lowest usable byte; the guard lies below */
    struct switch_point here, loops;
    struct loop_soon soon;    /* its start, a wake or a cancel on its way */
    struct loop_timer *timer; /* of the await in hand */
    int shields, reason;      /* reason: what the await in hand returns */
    bool started, done, parked, cancelled, woken, wants_wake, expired;
    int64_t given_ms;
    int64_t deadlines[DEADLINES_NESTED]; /* [depth] holds; [0]: none */
    int depth;
    struct activity *activity;
    LIST_ENTRY(fiber) links; /* in `untrimmed` while is_listed */
    bool is_listed, was_there;
    struct sanitize sanitize;
};
LIST_HEAD(fibers, fiber);

static __thread struct fiber *current;
static __thread struct fibers untrimmed; /* parked, and their stacks are as deep as they ever were */

/* ---- stacks ----------------------------------------------------------------------------- */

struct stack { /* a free one, at its own highest bytes: those were used last, and its other pages perhaps never */
    struct stack *next;
};
static __thread struct stack *stacks_free;
static __thread unsigned stacks_free_count;

static uint8_t *stack_create(void)
{
    if (stacks_free) {
        struct stack *stack = stacks_free;
        stacks_free = stack->next;
        stacks_free_count--;
        return (uint8_t *)(stack + 1) - STACK_BYTES;
    }
    uint8_t *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (mprotect(memory, GUARD_BYTES, PROT_NONE) < 0) {
        munmap(memory, GUARD_BYTES + STACK_BYTES);
        return NULL;
    }
    return memory + GUARD_BYTES;
}

static void stack_destroy(uint8_t *memory)
{
    sanitize_forget(memory, STACK_BYTES);
    if (stacks_free_count >= STACKS_KEPT) {
        munmap(memory - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
        return;
    }
    struct stack *stack = (struct stack *)(memory + STACK_BYTES) - 1;
    stack->next = stacks_free;
    stacks_free = stack;
    stacks_free_count++;
}

static void list_untrimmed(struct fiber *fiber)
{
    LIST_INSERT_HEAD(&untrimmed, fiber, links);
    fiber->is_listed = true;
    fiber->was_there = false;
}

static void unlist(struct fiber *fiber)
{
    if (fiber->is_listed)
        LIST_REMOVE(fiber, links);
    fiber->is_listed = false;
}

/* The kernel gives zeroes where it is deeper again. */
static void trim(struct fiber *fiber)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), bottom = (uintptr_t)fiber->stack;
    const uintptr_t top = (uintptr_t)switch_top(&fiber->here) & ~(page - 1);
    if (top > bottom)
        madvise(fiber->stack, top - bottom, MADV_DONTNEED);
}

void fibers_trim(void)
{
    struct fiber *next;
    for (struct fiber *fiber = LIST_FIRST(&untrimmed); fiber; fiber = next) {
        next = LIST_NEXT(fiber, links);
        if (fiber->was_there) {
            trim(fiber);
            unlist(fiber);
        }
        fiber->was_there = true;
    }
}

/* ---- switching: always between the loop's stack and a fiber's --------------------------- */

static void fiber_destroy(struct fiber *fiber)
{
    sanitize_finish(&fiber->sanitize);
    stack_destroy(fiber->stack);
    free(fiber);
}

/* On the loop's stack: runs the fiber until it parks or ends. */
static void switch_in(struct fiber *fiber)
{
    assert(!current && !fiber->done);
    current = fiber;
    sanitize_enter(&fiber->sanitize, fiber->stack, STACK_BYTES);
    switch_to(&fiber->loops, &fiber->here);
    sanitize_entered_loop(&fiber->sanitize);
    current = NULL;
    if (!fiber->done)
        return;
    void (*ended)(void *arg) = fiber->ended;
    void *arg = fiber->arg;
    loop_unpost(fiber->loop, &fiber->soon);
    fiber_destroy(fiber);
    if (ended)
        ended(arg);
}

static void switch_out(struct fiber *fiber)
{
    sanitize_leave(&fiber->sanitize, fiber->done);
    switch_to(&fiber->here, &fiber->loops);
    sanitize_entered_fiber(&fiber->sanitize);
}

static void fiber_main(void)
{
    struct fiber *fiber = current;
    sanitize_entered_fiber(&fiber->sanitize);
    fiber->run(fiber->arg);
    fiber->done = true;
    switch_out(fiber);
}

static void fiber_resume(struct fiber *fiber, int reason)
{
    if (!fiber->parked)
        return;
    fiber->reason = reason;
    fiber->parked = false;
    switch_in(fiber);
}

static bool is_stopped(const struct fiber *fiber) { return fiber->cancelled && fiber->shields == 0; }

static void fiber_soon(void *arg)
{
    struct fiber *fiber = arg;
    bool is_expired = fiber->expired;
    fiber->expired = false;
    if (!fiber->started) {
        fiber->started = true;
        switch_in(fiber);
    } else if (is_stopped(fiber))
        fiber_resume(fiber, -ECANCELED);
    else if (fiber->wants_wake && fiber->woken)
        fiber_resume(fiber, 0);
    else if (is_expired && fiber->depth > 0 && fiber->deadlines[fiber->depth] != 0 &&
             fiber->deadlines[fiber->depth] <= loop_now_ms())
        fiber_resume(fiber, -ETIMEDOUT);
}

/* ---- life ------------------------------------------------------------------------------- */

struct fiber *fiber_start(struct loop *loop, void (*run)(void *arg), void (*ended)(void *arg), void *arg)
{
    AUTO_FREE struct fiber *fiber = calloc(1, sizeof(*fiber));
    if (!fiber || !(fiber->stack = stack_create()))
        return NULL;
    fiber->loop = loop;
    fiber->run = run;
    fiber->ended = ended;
    fiber->arg = arg;
    fiber->soon = (struct loop_soon){.run = fiber_soon, .arg = fiber};
    switch_make(&fiber->here, fiber->stack, STACK_BYTES, fiber_main);
    sanitize_init(&fiber->sanitize);
    loop_post(loop, &fiber->soon);
    return take_ptr(&fiber);
}

void fiber_cancel(struct fiber *fiber)
{
    fiber->cancelled = true;
    loop_post(fiber->loop, &fiber->soon);
}

void fiber_wake(struct fiber *fiber)
{
    if (!fiber)
        return;
    fiber->woken = true;
    if (fiber->wants_wake)
        loop_post(fiber->loop, &fiber->soon);
}

struct fiber *fiber_current(void) { return current; }
struct loop *fiber_loop(void) { return current->loop; }
void fiber_set_activity(struct fiber *fiber, struct activity *activity) { fiber->activity = activity; }

struct activity *fiber_activity(const struct fiber *fiber) { return fiber->activity; }

bool fiber_is_cancelled(void) { return current->cancelled; }

void fiber_shield(bool on)
{
    current->shields += on ? 1 : -1;
    assert(current->shields >= 0);
}

/* ---- deadlines -------------------------------------------------------------------------- */

int64_t fiber_deadline(void) { return current->deadlines[current->depth]; }

void fiber_lift_deadline(int64_t deadline_ms)
{
    struct fiber *fiber = current;
    assert(fiber->depth + 1 < DEADLINES_NESTED);
    fiber->deadlines[++fiber->depth] = deadline_ms;
}

void fiber_push_deadline(int64_t deadline_ms)
{
    int64_t outer_ms = fiber_deadline();
    fiber_lift_deadline(outer_ms != 0 && outer_ms < deadline_ms ? outer_ms : deadline_ms);
}

void fiber_pop_deadline(void)
{
    assert(current->depth > 0);
    current->depth--;
}

void fiber_give_time(struct fiber *fiber, int64_t ms)
{
    for (int i = 1; i <= fiber->depth; i++)
        if (fiber->deadlines[i] != 0)
            fiber->deadlines[i] += ms;
    fiber->given_ms += ms;
}

void fiber_work_for(const struct fiber *other)
{
    const int64_t deadline_ms = other->depth > 0 ? other->deadlines[other->depth] : 0;
    if (deadline_ms != 0)
        fiber_push_deadline(deadline_ms);
    fiber_set_activity(current, fiber_activity(other));
}

int64_t fiber_given_time(const struct fiber *fiber) { return fiber->given_ms; }

void fiber_expire(struct fiber *fiber)
{
    if (fiber->depth == 0 || fiber->deadlines[fiber->depth] == 0)
        return;
    fiber->deadlines[fiber->depth] = loop_now_ms();
    fiber->expired = true;
    loop_post(fiber->loop, &fiber->soon);
}

bool fiber_is_late(void)
{
    int64_t deadline_ms = fiber_deadline();
    return deadline_ms != 0 && loop_now_ms() >= deadline_ms;
}

/* ---- awaiting --------------------------------------------------------------------------- */

static void timer_due(void *arg)
{
    struct fiber *fiber = arg;
    fiber->timer = NULL;
    fiber_resume(fiber, -ETIMEDOUT);
}

/* Milliseconds the await may last: the lesser of its own and the deadline's; -1: for ever. */
static int64_t time_left(int64_t timeout_ms)
{
    int64_t deadline_ms = fiber_deadline();
    if (deadline_ms == 0)
        return timeout_ms;
    int64_t left_ms = deadline_ms - loop_now_ms();
    if (left_ms < 0)
        left_ms = 0;
    return timeout_ms >= 0 && timeout_ms < left_ms ? timeout_ms : left_ms;
}

/* Why an await need not begin; 0 if it must. */
static int refuse_await(const struct fiber *fiber)
{
    assert(fiber); /* only inside a fiber */
    return is_stopped(fiber) ? -ECANCELED : fiber_is_late() ? -ETIMEDOUT : 0;
}

static int park(struct fiber *fiber, int64_t timeout_ms)
{
    int64_t left_ms = time_left(timeout_ms);
    if (left_ms >= 0 && !(fiber->timer = loop_after(fiber->loop, left_ms, timer_due, fiber)))
        return -ENOMEM;
    fiber->parked = true;
    list_untrimmed(fiber);
    switch_out(fiber);
    unlist(fiber);
    loop_cancel(fiber->loop, &fiber->timer);
    return fiber->reason;
}

static void fd_ready(void *arg, uint32_t events) { fiber_resume(arg, (int)(events & INT_MAX)); }

int await_fd(int fd, uint32_t events, int64_t timeout_ms)
{
    struct fiber *fiber = current;
    int refused = refuse_await(fiber);
    if (refused)
        return refused;
    struct loop_watch *watch = loop_watch(fiber->loop, fd, events, fd_ready, fiber);
    if (!watch)
        return errno == EPERM ? (int)events : -errno; /* a file is always ready */
    int result = park(fiber, timeout_ms);
    loop_unwatch(fiber->loop, &watch);
    return result;
}

int await_sleep(int64_t ms)
{
    struct fiber *fiber = current;
    int refused = refuse_await(fiber);
    if (refused)
        return refused;
    int64_t deadline_ms = fiber_deadline();
    bool is_cut = deadline_ms != 0 && loop_now_ms() + ms > deadline_ms;
    int result = park(fiber, ms < 0 ? 0 : ms);
    return result == -ETIMEDOUT && !is_cut ? 0 : result;
}

int await_wake(int64_t timeout_ms)
{
    struct fiber *fiber = current;
    int result = refuse_await(fiber);
    if (result == 0 && !fiber->woken) {
        fiber->wants_wake = true;
        result = park(fiber, timeout_ms);
        fiber->wants_wake = false;
    }
    if (result == 0)
        fiber->woken = false;
    return result;
}

static int say_why(int code, struct fail *fail)
{
    const char *why = code == -ECANCELED ? "cancelled" : code == -ETIMEDOUT ? "out of time" : strerror(-code);
    return fail_set(fail, code, "%s", why);
}

int await_until(int64_t until_ms, struct fail *fail)
{
    int64_t left_ms = until_ms - loop_now_ms();
    int woken = left_ms > 0 ? await_wake(left_ms) : 0;
    return woken == 0 || (woken == -ETIMEDOUT && loop_now_ms() >= until_ms) ? 0 : say_why(woken, fail);
}

int await_turn(struct fail *fail)
{
    int code = await_sleep(0);
    return code == 0 ? 0 : say_why(code, fail);
}
