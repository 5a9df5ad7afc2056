#include "workers/runtime/offload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"

struct offload {
    int (*work)(void *arg, const atomic_bool *stop);
    void *arg;
    pthread_t thread;
    atomic_bool stop;
    int result, done; /* done: an eventfd */
};

static void *offload_main(void *arg)
{
    struct offload *offload = arg;
    offload->result = offload->work(offload->arg, &offload->stop);
    uint64_t one = 1;
    while (write(offload->done, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    return NULL;
}

/* Signals are the main thread's. */
static int start_thread(pthread_t *thread, struct offload *offload)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(thread, NULL, offload_main, offload);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -code;
}

/* Waits until the work has ended, whatever happens to the fiber. */
static int await_end(struct offload *offload)
{
    int code = await_fd(offload->done, EPOLLIN, -1);
    if (code > 0)
        return 0;
    atomic_store(&offload->stop, true);
    fiber_shield(true);
    fiber_lift_deadline(0);
    while (await_fd(offload->done, EPOLLIN, -1) == -EINTR)
        ;
    fiber_pop_deadline();
    fiber_shield(false);
    return code;
}

int offload_begin(int (*work)(void *arg, const atomic_bool *stop), void *arg, struct offload **ret, struct fail *fail)
{
    AUTO_FREE struct offload *offload = calloc(1, sizeof(*offload));
    if (!offload)
        return fail_memory(fail);
    *offload = (struct offload){.work = work, .arg = arg, .done = eventfd(0, EFD_CLOEXEC)};
    int code = offload->done < 0 ? -errno : start_thread(&offload->thread, offload);
    if (code < 0) {
        cleanup_close(&offload->done);
        return fail_set(fail, code, "cannot start a thread: %s", strerror(-code));
    }
    *ret = take_ptr(&offload);
    return 0;
}

int offload_end(struct offload **ending, struct fail *fail)
{
    struct offload *offload = take_ptr(ending);
    int code = await_end(offload);
    pthread_join(offload->thread, NULL);
    int result = offload->result;
    close(offload->done);
    free(offload);
    return code == 0 || result >= 0 ? result : fail_set(fail, code, "%s", strerror(-code));
}

int offload_run(int (*work)(void *arg, const atomic_bool *stop), void *arg, struct fail *fail)
{
    atomic_bool never = false;
    struct offload *offload;
    if (!fiber_current())
        return work(arg, &never);
    int code = offload_begin(work, arg, &offload, fail);
    return code < 0 ? code : offload_end(&offload, fail);
}
