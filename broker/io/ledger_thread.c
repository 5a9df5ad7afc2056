#include "broker/io/ledger_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"

struct ledger_thread {
    ledger_thread_work *work;
    void *context;
    int event_fd;
    bool is_busy; /* of the thread that gives and takes alone */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t changed;
    void *given, *done;
    bool has_begun, is_stopping;
};

static void *work_again_and_again(void *arg)
{
    struct ledger_thread *thread = arg;
    pthread_mutex_lock(&thread->mutex);
    thread->has_begun = true;
    pthread_cond_broadcast(&thread->changed);
    for (;;) {
        while (!thread->given && !thread->is_stopping)
            pthread_cond_wait(&thread->changed, &thread->mutex);
        void *thing = take_ptr(&thread->given);
        if (!thing)
            break;
        pthread_mutex_unlock(&thread->mutex);
        thread->work(thread->context, thing);
        pthread_mutex_lock(&thread->mutex);
        thread->done = thing;
        eventfd_write(thread->event_fd, 1);
        pthread_cond_broadcast(&thread->changed);
    }
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

/* From then on it holds nothing while it waits: a caller may fork. */
static void await_begin(struct ledger_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    while (!thread->has_begun)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    pthread_mutex_unlock(&thread->mutex);
}

int ledger_thread_start(struct ledger_thread **ret, ledger_thread_work *work, void *context, struct fail *fail)
{
    struct ledger_thread *thread = calloc(1, sizeof(*thread));
    if (!thread)
        return fail_set(fail, -ENOMEM, "out of memory");
    thread->work = work;
    thread->context = context;
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_cond_init(&thread->changed, NULL);
    thread->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = thread->event_fd < 0 ? fail_set(fail, -errno, "eventfd: %s", strerror(errno)) : 0;
    if (code == 0) {
        code = -pthread_create(&thread->thread, NULL, work_again_and_again, thread);
        thread->has_thread = code == 0;
        if (code)
            fail_set(fail, code, "cannot start a thread for the ledger: %s", strerror(-code));
    }
    if (code) {
        ledger_thread_stop(&thread);
        return code;
    }
    await_begin(thread);
    *ret = thread;
    return 0;
}

void ledger_thread_stop(struct ledger_thread **stopping)
{
    struct ledger_thread *thread = take_ptr(stopping);
    if (!thread)
        return;
    pthread_mutex_lock(&thread->mutex);
    thread->is_stopping = true;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    if (thread->has_thread)
        pthread_join(thread->thread, NULL);
    if (thread->event_fd >= 0)
        close(thread->event_fd);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->mutex);
    free(thread);
}

void ledger_thread_give(struct ledger_thread *thread, void *thing)
{
    pthread_mutex_lock(&thread->mutex);
    thread->given = thing;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    thread->is_busy = true;
}

static void *take(struct ledger_thread *thread, bool waits)
{
    eventfd_t told;
    pthread_mutex_lock(&thread->mutex);
    while (waits && thread->is_busy && !thread->done)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    void *done = take_ptr(&thread->done);
    if (done)
        eventfd_read(thread->event_fd, &told);
    pthread_mutex_unlock(&thread->mutex);
    thread->is_busy &= !done;
    return done;
}

void *ledger_thread_take(struct ledger_thread *thread) { return thread->is_busy ? take(thread, false) : NULL; }

void *ledger_thread_await(struct ledger_thread *thread) { return take(thread, true); }

bool ledger_thread_is_idle(const struct ledger_thread *thread) { return !thread->is_busy; }

int ledger_thread_fd(const struct ledger_thread *thread) { return thread->event_fd; }
