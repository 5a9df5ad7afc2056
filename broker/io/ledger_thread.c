#include "broker/io/ledger_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "common/base/cleanup.h"
#include "common/base/side_thread.h"

struct ledger_thread {
    struct side_thread side;
    ledger_thread_work *work;
    void *context;
    bool is_busy;       /* of the thread that gives and takes alone */
    void *given, *done; /* under the mutex */
};

static void work_again_and_again(void *arg)
{
    struct ledger_thread *thread = arg;
    for (;;) {
        while (!thread->given && !thread->side.is_stopping)
            side_thread_wait(&thread->side);
        void *thing = take_ptr(&thread->given);
        if (!thing)
            return;
        pthread_mutex_unlock(&thread->side.mutex);
        thread->work(thread->context, thing);
        pthread_mutex_lock(&thread->side.mutex);
        thread->done = thing;
        eventfd_write(thread->side.event_fd, 1);
        side_thread_tell(&thread->side);
    }
}

int ledger_thread_start(struct ledger_thread **ret, ledger_thread_work *work, void *context, struct fail *fail)
{
    struct ledger_thread *thread = calloc(1, sizeof(*thread));
    if (!thread)
        return fail_set(fail, -ENOMEM, "out of memory");
    thread->work = work;
    thread->context = context;
    int code = side_thread_start(&thread->side, work_again_and_again, thread, "the ledger", fail);
    if (code)
        free(thread);
    else
        *ret = thread;
    return code;
}

void ledger_thread_stop(struct ledger_thread **stopping)
{
    struct ledger_thread *thread = take_ptr(stopping);
    if (!thread)
        return;
    side_thread_stop(&thread->side);
    free(thread);
}

void ledger_thread_give(struct ledger_thread *thread, void *thing)
{
    pthread_mutex_lock(&thread->side.mutex);
    thread->given = thing;
    side_thread_tell(&thread->side);
    pthread_mutex_unlock(&thread->side.mutex);
    thread->is_busy = true;
}

static void *take(struct ledger_thread *thread, bool waits)
{
    eventfd_t told;
    pthread_mutex_lock(&thread->side.mutex);
    while (waits && thread->is_busy && !thread->done)
        side_thread_wait(&thread->side);
    void *done = take_ptr(&thread->done);
    if (done)
        eventfd_read(thread->side.event_fd, &told);
    pthread_mutex_unlock(&thread->side.mutex);
    thread->is_busy &= !done;
    return done;
}

void *ledger_thread_take(struct ledger_thread *thread) { return thread->is_busy ? take(thread, false) : NULL; }

void *ledger_thread_await(struct ledger_thread *thread) { return take(thread, true); }

bool ledger_thread_is_idle(const struct ledger_thread *thread) { return !thread->is_busy; }

int ledger_thread_fd(const struct ledger_thread *thread) { return thread->side.event_fd; }
