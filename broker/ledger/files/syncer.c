#include "broker/ledger/files/syncer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"

struct syncer {
    int fd, event_fd;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t mutex;            /* of all below */
    pthread_cond_t asked_more, ended; /* a sync, or its beginning */
    struct commit_point asked, reached;
    int code; /* what a sync failed with */
    bool has_begun, is_told, is_stopping;
};

/* Said once until somebody looks, so that a thread which syncs all the time does not write all the time. */
static void tell(struct syncer *syncer)
{
    if (!syncer->is_told)
        eventfd_write(syncer->event_fd, 1);
    syncer->is_told = true;
    pthread_cond_broadcast(&syncer->ended);
}

static void *sync_again_and_again(void *arg)
{
    struct syncer *syncer = arg;
    pthread_mutex_lock(&syncer->mutex);
    syncer->has_begun = true;
    pthread_cond_broadcast(&syncer->ended);
    while (syncer->code == 0) {
        while (!syncer->is_stopping && syncer->asked.number == syncer->reached.number)
            pthread_cond_wait(&syncer->asked_more, &syncer->mutex);
        if (syncer->is_stopping)
            break;
        const struct commit_point point = syncer->asked;
        pthread_mutex_unlock(&syncer->mutex);
        const int code = fdatasync(syncer->fd) < 0 ? -errno : 0;
        pthread_mutex_lock(&syncer->mutex);
        syncer->code = code;
        if (code == 0)
            syncer->reached = point;
        tell(syncer);
    }
    pthread_mutex_unlock(&syncer->mutex);
    return NULL;
}

/* From then on it holds nothing while it waits: a caller may fork. */
static void await_begin(struct syncer *syncer)
{
    pthread_mutex_lock(&syncer->mutex);
    while (!syncer->has_begun)
        pthread_cond_wait(&syncer->ended, &syncer->mutex);
    pthread_mutex_unlock(&syncer->mutex);
}

int syncer_start(struct syncer **ret, int fd, struct fail *fail)
{
    struct syncer *syncer = calloc(1, sizeof(*syncer));
    if (!syncer)
        return fail_set(fail, -ENOMEM, "out of memory");
    pthread_mutex_init(&syncer->mutex, NULL);
    pthread_cond_init(&syncer->asked_more, NULL);
    pthread_cond_init(&syncer->ended, NULL);
    syncer->fd = fd;
    syncer->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = syncer->event_fd < 0 ? fail_set(fail, -errno, "eventfd: %s", strerror(errno)) : 0;
    if (code == 0) {
        code = -pthread_create(&syncer->thread, NULL, sync_again_and_again, syncer);
        syncer->has_thread = code == 0;
        if (code)
            fail_set(fail, code, "cannot start a thread for syncs: %s", strerror(-code));
    }
    if (code) {
        syncer_stop(&syncer);
        return code;
    }
    await_begin(syncer);
    *ret = syncer;
    return 0;
}

void syncer_stop(struct syncer **stopping)
{
    struct syncer *syncer = take_ptr(stopping);
    if (!syncer)
        return;
    pthread_mutex_lock(&syncer->mutex);
    syncer->is_stopping = true;
    pthread_cond_signal(&syncer->asked_more);
    pthread_mutex_unlock(&syncer->mutex);
    if (syncer->has_thread)
        pthread_join(syncer->thread, NULL);
    if (syncer->event_fd >= 0)
        close(syncer->event_fd);
    pthread_cond_destroy(&syncer->asked_more);
    pthread_cond_destroy(&syncer->ended);
    pthread_mutex_destroy(&syncer->mutex);
    free(syncer);
}

void syncer_ask(struct syncer *syncer, struct commit_point point)
{
    pthread_mutex_lock(&syncer->mutex);
    syncer->asked = point;
    pthread_cond_signal(&syncer->asked_more);
    pthread_mutex_unlock(&syncer->mutex);
}

int syncer_reached(struct syncer *syncer, struct commit_point *ret)
{
    pthread_mutex_lock(&syncer->mutex);
    if (syncer->is_told) {
        eventfd_t told;
        eventfd_read(syncer->event_fd, &told);
        syncer->is_told = false;
    }
    *ret = syncer->reached;
    const int code = syncer->code;
    pthread_mutex_unlock(&syncer->mutex);
    return code;
}

int syncer_code(struct syncer *syncer)
{
    pthread_mutex_lock(&syncer->mutex);
    const int code = syncer->code;
    pthread_mutex_unlock(&syncer->mutex);
    return code;
}

int syncer_await(struct syncer *syncer, uint64_t number)
{
    pthread_mutex_lock(&syncer->mutex);
    while (syncer->code == 0 && syncer->reached.number < number)
        pthread_cond_wait(&syncer->ended, &syncer->mutex);
    const int code = syncer->code;
    pthread_mutex_unlock(&syncer->mutex);
    return code;
}

int syncer_fd(const struct syncer *syncer) { return syncer->event_fd; }
