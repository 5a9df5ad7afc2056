/*
 * side_thread.h - a thread beside the one that starts it: with a mutex for what the two share, a condition that
 * either waits for and tells of, and a descriptor by which the side thread wakes the other's poll. What they share,
 * and when it is done, is their own.
 */
#ifndef SLUICE_COMMON_BASE_SIDE_THREAD_H
#define SLUICE_COMMON_BASE_SIDE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/fail.h"

/* What it does, with the mutex held but for where it works and waits, until is_stopping. */
typedef void side_thread_run(void *arg);

struct side_thread {
    side_thread_run *run;
    void *arg;
    pthread_t thread;
    bool has_thread;
    int event_fd; /* an eventfd that blocks nobody */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_begun, is_stopping; /* under the mutex */
};

/*
 * `purpose` says what it is for, in a failure's sentence. When this returns the thread has begun, and holds nothing
 * while it waits: a caller may fork.
 */
int side_thread_start(struct side_thread *thread, side_thread_run *run, void *arg, const char *purpose,
                      struct fail *fail);
/* Says that it is to stop, and waits until it has. Of one that was not started: nothing. */
void side_thread_stop(struct side_thread *thread);

/* Both with the mutex held. */
void side_thread_wait(struct side_thread *thread);
void side_thread_tell(struct side_thread *thread);

#endif
