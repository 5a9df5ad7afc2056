/*
 * worker_clock.h - a worker whose loop's time passes as the test says, beside the real time, and at once: its timers,
 * deadlines and beats, not those of the processes that it starts. For a test that CMakeLists.txt gives SKIPPING_WORKER.
 */
#ifndef SLUICE_TESTS_WORKERS_SERVICE_WORKER_CLOCK_H
#define SLUICE_TESTS_WORKERS_SERVICE_WORKER_CLOCK_H

#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/workers/service/worker_harness.h"

static _Atomic int64_t *worker_skipped_us;

/* Before the first worker; group setup. */
static inline int worker_clock_open(void **state)
{
    char number[16];
    int fd = memfd_create("clock", 0); /* which workers inherit */
    (void)state;
    if (fd < 0 || ftruncate(fd, sizeof(*worker_skipped_us)) < 0)
        return -1;
    void *page = mmap(NULL, sizeof(*worker_skipped_us), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(number, sizeof(number), "%d", fd);
    worker_skipped_us = page;
    worker_program = SKIPPING_WORKER;
    return page == MAP_FAILED ? -1 : setenv("SLUICE_TEST_CLOCK", number, 1);
}

/* The worker's loop's time. */
static inline int64_t worker_now_ms(void) { return clock_ms() + atomic_load(worker_skipped_us) / 1000; }

static inline void worker_skip(int64_t ms) { atomic_fetch_add(worker_skipped_us, ms * 1000); }

/* The beat of a second that passes at once. */
static inline void skip_to_beat(void)
{
    worker_skip(1000);
    hear_beat();
}

/* Of a job that does nothing but wait, such as for its next try: beat by beat, each a second that passes at once. */
static inline const struct msg_job_result *skip_to_result(const char *job)
{
    const struct msg_job_result *result = NULL;
    for (; !result; result = take_result(job)) {
        worker_skip(1000);
        if (!hear(BOUND_MS))
            fail_msg("nothing from the worker within %d ms", BOUND_MS);
    }
    return result;
}

#endif
