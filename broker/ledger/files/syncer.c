#include "broker/ledger/files/syncer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/side_thread.h"

struct syncer {
    struct side_thread side;
    int fd;
    /* Under the mutex: */
    struct commit_point asked, reached;
    int code; /* what a sync failed with */
    bool is_told;
};

/* Said once until somebody looks, so that a thread which syncs all the time does not write all the time. */
static void tell(struct syncer *syncer)
{
    if (!syncer->is_told)
        eventfd_write(syncer->side.event_fd, 1);
    syncer->is_told = true;
    side_thread_tell(&syncer->side);
}

static void sync_again_and_again(void *arg)
{
    struct syncer *syncer = arg;
    while (syncer->code == 0) {
        while (!syncer->side.is_stopping && syncer->asked.number == syncer->reached.number)
            side_thread_wait(&syncer->side);
        if (syncer->side.is_stopping)
            return;
        const struct commit_point point = syncer->asked;
        pthread_mutex_unlock(&syncer->side.mutex);
        const int code = fdatasync(syncer->fd) < 0 ? -errno : 0;
        pthread_mutex_lock(&syncer->side.mutex);
        syncer->code = code;
        if (code == 0)
            syncer->reached = point;
        tell(syncer);
    }
}

int syncer_start(struct syncer **ret, int fd, struct fail *fail)
{
    struct syncer *syncer = calloc(1, sizeof(*syncer));
    if (!syncer)
        return fail_set(fail, -ENOMEM, "out of memory");
    syncer->fd = fd;
    int code = side_thread_start(&syncer->side, sync_again_and_again, syncer, "syncs", fail);
    if (code)
        free(syncer);
    else
        *ret = syncer;
    return code;
}

void syncer_stop(struct syncer **stopping)
{
    struct syncer *syncer = take_ptr(stopping);
    if (!syncer)
        return;
    side_thread_stop(&syncer->side);
    free(syncer);
}

void syncer_ask(struct syncer *syncer, struct commit_point point)
{
    pthread_mutex_lock(&syncer->side.mutex);
    syncer->asked = point;
    side_thread_tell(&syncer->side);
    pthread_mutex_unlock(&syncer->side.mutex);
}

int syncer_reached(struct syncer *syncer, struct commit_point *ret)
{
    pthread_mutex_lock(&syncer->side.mutex);
    if (syncer->is_told) {
        eventfd_t told;
        eventfd_read(syncer->side.event_fd, &told);
        syncer->is_told = false;
    }
    *ret = syncer->reached;
    const int code = syncer->code;
    pthread_mutex_unlock(&syncer->side.mutex);
    return code;
}

int syncer_code(struct syncer *syncer)
{
    pthread_mutex_lock(&syncer->side.mutex);
    const int code = syncer->code;
    pthread_mutex_unlock(&syncer->side.mutex);
    return code;
}

int syncer_await(struct syncer *syncer, uint64_t number)
{
    pthread_mutex_lock(&syncer->side.mutex);
    while (syncer->code == 0 && syncer->reached.number < number)
        side_thread_wait(&syncer->side);
    const int code = syncer->code;
    pthread_mutex_unlock(&syncer->side.mutex);
    return code;
}

int syncer_fd(const struct syncer *syncer) { return syncer->side.event_fd; }
