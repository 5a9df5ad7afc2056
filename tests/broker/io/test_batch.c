/* What of a batch is the ledger's to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "broker/io/batch.h"

static void answers_are_not_the_ledgers_work_and_rows_jobs_and_trajectories_are(void **state)
{
    static const enum effect_kind kinds[] = {SEND_CLIENT,  PERSIST_GROUP, SEND_CLIENT,        LANE_JOB,
                                             PUBLISH_HEAD, LANE_SEND,     PUBLISH_TRAJECTORY, SEND_RANGE};
    enum { COUNT = sizeof(kinds) / sizeof(*kinds), WORK = 4, BEFORE_JOB = 3 };
    struct effect items[COUNT] = {0};
    struct batch *batch = batch_create();
    (void)state;
    assert_non_null(batch);
    for (size_t i = 0; i < COUNT; i++)
        items[i].kind = kinds[i];
    assert_int_equal(batch_count_work(batch, (struct effects){items, BEFORE_JOB}), 1);
    assert_int_equal(batch_count_work(batch, (struct effects){items, COUNT}), WORK);
    assert_int_equal(batch_count_work(batch, (struct effects){items, COUNT}), WORK);
    batch_clear(batch);
    assert_int_equal(batch_count_work(batch, (struct effects){items, 1}), 0);
    batch_destroy(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_not_the_ledgers_work_and_rows_jobs_and_trajectories_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
