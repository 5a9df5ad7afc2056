#include "common/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"

enum { EVENTS_A_TURN = 128, HEAP_FIRST = 64 };

struct loop_watch {
    struct loop_watch *next, **link; /* in loop->watches, or in loop->dead */
    int fd;
    bool owns_fd; /* a duplicate, made when another watch has the same fd */
    void (*ready)(void *arg, uint32_t events);
    void *arg;
};

struct loop_timer {
    int64_t due_us;
    uint64_t order; /* of two due at once the older is first */
    size_t place;   /* in the heap */
    void (*due)(void *arg);
    void *arg;
};

struct loop {
    int epoll_fd;
    bool stopped, dispatching;
    uint64_t progress, timers_made;
    struct loop_watch *watches, *dead; /* dead: unwatched while events were in hand */
    struct loop_timer **heap;
    size_t timer_count, heap_capacity;
    struct loop_soon *posted, **posted_end;
    void (*prepare)(void *arg);
    void *prepare_arg;
};

/* ---- the heap: heap[0] is due first, a parent before its children ----------------------- */

static bool timer_is_before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->order < b->order;
}

static void heap_put(struct loop *loop, struct loop_timer *timer, size_t place)
{
    loop->heap[place] = timer;
    timer->place = place;
}

static void heap_rise(struct loop *loop, struct loop_timer *timer, size_t place)
{
    while (place > 0 && timer_is_before(timer, loop->heap[(place - 1) / 2])) {
        heap_put(loop, loop->heap[(place - 1) / 2], place);
        place = (place - 1) / 2;
    }
    heap_put(loop, timer, place);
}

static void heap_sink(struct loop *loop, struct loop_timer *timer, size_t place)
{
    for (size_t child; (child = 2 * place + 1) < loop->timer_count; place = child) {
        if (child + 1 < loop->timer_count && timer_is_before(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (!timer_is_before(loop->heap[child], timer))
            break;
        heap_put(loop, loop->heap[child], place);
    }
    heap_put(loop, timer, place);
}

static void heap_remove(struct loop *loop, struct loop_timer *timer)
{
    size_t place = timer->place;
    struct loop_timer *last = loop->heap[--loop->timer_count];
    if (last == timer)
        return;
    if (timer_is_before(last, timer))
        heap_rise(loop, last, place);
    else
        heap_sink(loop, last, place);
}

static bool heap_has_room(struct loop *loop)
{
    if (loop->timer_count < loop->heap_capacity)
        return true;
    size_t capacity = loop->heap_capacity ? 2 * loop->heap_capacity : HEAP_FIRST;
    struct loop_timer **heap = realloc(loop->heap, capacity * sizeof(*heap));
    if (!heap)
        return false;
    loop->heap = heap;
    loop->heap_capacity = capacity;
    return true;
}

struct loop_timer *loop_after(struct loop *loop, int64_t delay_ms, void (*due)(void *arg), void *arg)
{
    struct loop_timer *timer = heap_has_room(loop) ? malloc(sizeof(*timer)) : NULL;
    if (!timer)
        return NULL;
    int64_t delay_us = delay_ms < 0 ? 0 : delay_ms < INT64_MAX / 4000 ? delay_ms * 1000 : INT64_MAX / 4;
    *timer = (struct loop_timer){
        .due_us = loop_now_us() + delay_us, .order = loop->timers_made++, .due = due, .arg = arg};
    heap_rise(loop, timer, loop->timer_count++);
    return timer;
}

void loop_cancel(struct loop *loop, struct loop_timer **timer)
{
    if (!*timer)
        return;
    heap_remove(loop, *timer);
    free(take_ptr(timer));
}

/* Timers made by these callbacks wait for the next turn, so that none can starve the fds. */
static void run_due_timers(struct loop *loop)
{
    int64_t now_us = loop_now_us();
    uint64_t made_before = loop->timers_made;
    while (loop->timer_count > 0 && !loop->stopped) {
        struct loop_timer *timer = loop->heap[0];
        if (timer->due_us > now_us || timer->order >= made_before)
            return;
        void (*due)(void *arg) = timer->due;
        void *arg = timer->arg;
        loop_cancel(loop, &timer);
        due(arg);
    }
}

/* ---- watches ---------------------------------------------------------------------------- */

static void watch_link(struct loop_watch **list, struct loop_watch *watch)
{
    watch->next = *list;
    watch->link = list;
    if (watch->next)
        watch->next->link = &watch->next;
    *list = watch;
}

static void watch_free(struct loop_watch *watch)
{
    *watch->link = watch->next;
    if (watch->next)
        watch->next->link = watch->link;
    free(watch);
}

static int epoll_set(struct loop *loop, int operation, struct loop_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    return epoll_ctl(loop->epoll_fd, operation, watch->fd, &event);
}

/* epoll knows an fd once; a second watch of it goes by a duplicate. */
static int epoll_add_duplicate(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
    AUTO_CLOSE int fd = fcntl(watch->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    watch->fd = fd;
    if (epoll_set(loop, EPOLL_CTL_ADD, watch, events) < 0)
        return -1;
    watch->owns_fd = true;
    take_fd(&fd);
    return 0;
}

struct loop_watch *loop_watch(struct loop *loop, int fd, uint32_t events, void (*ready)(void *arg, uint32_t events),
                              void *arg)
{
    AUTO_FREE struct loop_watch *watch = malloc(sizeof(*watch));
    if (!watch)
        return NULL;
    *watch = (struct loop_watch){.fd = fd, .ready = ready, .arg = arg};
    if (epoll_set(loop, EPOLL_CTL_ADD, watch, events) < 0 &&
        (errno != EEXIST || epoll_add_duplicate(loop, watch, events) < 0))
        return NULL;
    watch_link(&loop->watches, watch);
    return take_ptr(&watch);
}

bool loop_rewatch(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
    return epoll_set(loop, EPOLL_CTL_MOD, watch, events) == 0;
}

void loop_unwatch(struct loop *loop, struct loop_watch **watch)
{
    struct loop_watch *old = take_ptr(watch);
    if (!old)
        return;
    epoll_set(loop, EPOLL_CTL_DEL, old, 0);
    if (old->owns_fd)
        close(old->fd);
    if (!loop->dispatching) {
        watch_free(old);
        return;
    }
    *old->link = old->next;
    if (old->next)
        old->next->link = old->link;
    old->ready = NULL;
    watch_link(&loop->dead, old);
}

static void dispatch(struct loop *loop, const struct epoll_event *events, int count)
{
    loop->dispatching = true;
    for (int i = 0; i < count; i++) {
        struct loop_watch *watch = events[i].data.ptr;
        if (watch->ready)
            watch->ready(watch->arg, events[i].events);
    }
    loop->dispatching = false;
    while (loop->dead)
        watch_free(loop->dead);
}

/* ---- posts ------------------------------------------------------------------------------ */

void loop_post(struct loop *loop, struct loop_soon *soon)
{
    if (soon->link)
        return;
    soon->next = NULL;
    soon->link = loop->posted_end;
    *loop->posted_end = soon;
    loop->posted_end = &soon->next;
}

void loop_unpost(struct loop *loop, struct loop_soon *soon)
{
    if (!soon->link)
        return;
    *soon->link = soon->next;
    if (soon->next)
        soon->next->link = soon->link;
    if (loop->posted_end == &soon->next)
        loop->posted_end = soon->link;
    soon->link = NULL;
}

/* Those posted meanwhile wait for the next turn: a mark at the end says where this one stops. */
static void run_posted(struct loop *loop)
{
    struct loop_soon mark = {0};
    loop_post(loop, &mark);
    while (loop->posted != &mark) {
        struct loop_soon *soon = loop->posted;
        loop_unpost(loop, soon);
        soon->run(soon->arg);
    }
    loop_unpost(loop, &mark);
}

/* ---- the loop --------------------------------------------------------------------------- */

struct loop *loop_create(void)
{
    AUTO_FREE struct loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return NULL;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return NULL;
    loop->posted_end = &loop->posted;
    return take_ptr(&loop);
}

void loop_destroy(struct loop **loop)
{
    struct loop *old = take_ptr(loop);
    if (!old)
        return;
    while (old->watches) {
        struct loop_watch *watch = old->watches;
        loop_unwatch(old, &watch);
    }
    for (size_t i = 0; i < old->timer_count; i++)
        free(old->heap[i]);
    free(old->heap);
    close(old->epoll_fd);
    free(old);
}

void loop_set_prepare(struct loop *loop, void (*prepare)(void *arg), void *arg)
{
    loop->prepare = prepare;
    loop->prepare_arg = arg;
}

static int wait_ms(const struct loop *loop)
{
    if (loop->posted || loop->stopped)
        return 0;
    if (loop->timer_count == 0)
        return -1;
    int64_t left_us = loop->heap[0]->due_us - loop_now_us();
    int64_t left_ms = left_us <= 0 ? 0 : (left_us + 999) / 1000;
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

void loop_run(struct loop *loop)
{
    struct epoll_event events[EVENTS_A_TURN];
    loop->stopped = false;
    while (!loop->stopped) {
        loop->progress++;
        run_posted(loop);
        if (loop->prepare)
            loop->prepare(loop->prepare_arg);
        int count = epoll_wait(loop->epoll_fd, events, EVENTS_A_TURN, wait_ms(loop));
        dispatch(loop, events, count); /* count is -1 after a signal */
        run_due_timers(loop);
    }
}

void loop_stop(struct loop *loop) { loop->stopped = true; }

uint64_t loop_progress(const struct loop *loop) { return loop->progress; }
