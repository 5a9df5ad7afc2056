/* A job's clock: preparing does not count against the stage's limit, as long as it is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/jobs/job.h"

enum { LIMIT_MS = 7000 };

static struct loop *loop;
static struct task task = {.limits = {.init_s = 3, .run_s = LIMIT_MS / 1000, .eval_s = 5}};
static struct job job;

static void stop_loop(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void in_fiber(void (*body)(void *arg))
{
    loop = loop_create();
    job = (struct job){.task = &task};
    assert_non_null(fiber_start(loop, body, stop_loop, NULL));
    loop_run(loop);
    loop_destroy(&loop);
}

static void assert_left(int64_t expected_ms)
{
    int64_t left_ms = fiber_deadline() - clock_ms();
    assert_in_range(left_ms, expected_ms - 2000, expected_ms);
}

static void short_body(void *arg)
{
    (void)arg;
    job_begin(&job, STAGE_RUN);
    assert_left(JOB_PREPARE_MS + LIMIT_MS);
    job_begin_work(&job);
    assert_left(LIMIT_MS);
}

static void the_limit_runs_from_when_the_work_begins(void **state)
{
    (void)state;
    in_fiber(short_body);
}

/* As if preparing had taken a second longer than is free. */
static void long_body(void *arg)
{
    (void)arg;
    job_begin(&job, STAGE_RUN);
    job.prepared_by_ms = clock_ms() - 1000;
    job_begin_work(&job);
    assert_left(LIMIT_MS - 1000);
}

static void preparing_for_long_counts_against_the_limit(void **state)
{
    (void)state;
    in_fiber(long_body);
}

static void each_body(void *arg)
{
    (void)arg;
    const int64_t limits_ms[] = {3000, LIMIT_MS, 5000};
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++) {
        job_begin(&job, stage);
        job_begin_work(&job);
        assert_left(limits_ms[stage]);
        fiber_pop_deadline();
    }
}

static void each_stage_has_its_own_limit(void **state)
{
    (void)state;
    in_fiber(each_body);
}

/* What the broker waits beyond a limit, its deadline_grace_ms, is 30 s. */
static void all_a_jobs_time_ends_before_the_broker_takes_it_away(void **state)
{
    (void)state;
    assert_true(JOB_PREPARE_MS + JOB_PACK_MS + JOB_OVERDUE_MS < 30000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_runs_from_when_the_work_begins),
        cmocka_unit_test(preparing_for_long_counts_against_the_limit),
        cmocka_unit_test(each_stage_has_its_own_limit),
        cmocka_unit_test(all_a_jobs_time_ends_before_the_broker_takes_it_away),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
