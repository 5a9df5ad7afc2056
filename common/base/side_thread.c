#include "common/base/side_thread.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *begin(void *arg)
{
    struct side_thread *thread = arg;
    pthread_mutex_lock(&thread->mutex);
    thread->has_begun = true;
    side_thread_tell(thread);
    thread->run(thread->arg);
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

static void await_begin(struct side_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    while (!thread->has_begun)
        side_thread_wait(thread);
    pthread_mutex_unlock(&thread->mutex);
}

int side_thread_start(struct side_thread *thread, side_thread_run *run, void *arg, const char *purpose,
                      struct fail *fail)
{
    *thread = (struct side_thread){.run = run, .arg = arg, .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (thread->event_fd < 0)
        return fail_set(fail, -errno, "eventfd: %s", strerror(errno));
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_cond_init(&thread->changed, NULL);
    const int error = pthread_create(&thread->thread, NULL, begin, thread);
    if (error) {
        close(thread->event_fd);
        return fail_set(fail, -error, "cannot start a thread for %s: %s", purpose, strerror(error));
    }
    thread->has_thread = true;
    await_begin(thread);
    return 0;
}

void side_thread_stop(struct side_thread *thread)
{
    if (!thread->has_thread)
        return;
    pthread_mutex_lock(&thread->mutex);
    thread->is_stopping = true;
    side_thread_tell(thread);
    pthread_mutex_unlock(&thread->mutex);
    pthread_join(thread->thread, NULL);
    close(thread->event_fd);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->mutex);
    thread->has_thread = false;
}

void side_thread_wait(struct side_thread *thread) { pthread_cond_wait(&thread->changed, &thread->mutex); }

void side_thread_tell(struct side_thread *thread) { pthread_cond_broadcast(&thread->changed); }
