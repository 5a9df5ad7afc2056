/* What is kept by a job's name is found by it, as long as it is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/jobs/job_index.h"

struct kept {
    struct job_link by_job;
    char job[32];
};

static void keep(struct job_index *index, struct kept *kept, size_t number)
{
    int len = snprintf(kept->job, sizeof(kept->job), "run:g/%zu", number);
    kept->by_job = (struct job_link){.job = slice_of(kept->job, (size_t)len), .kept = kept};
    job_index_add(index, &kept->by_job);
}

static void all_are_found_though_many_share_a_bucket(void **state)
{
    (void)state;
    enum { COUNT = 3 * JOB_INDEX_BUCKETS };
    AUTO_FREE struct job_index *index = calloc(1, sizeof(*index));
    AUTO_FREE struct kept *kept = calloc(COUNT, sizeof(*kept));
    assert_true(index && kept);
    for (size_t i = 0; i < COUNT; i++)
        keep(index, &kept[i], i);
    for (size_t i = 0; i < COUNT; i++)
        assert_ptr_equal(job_index_find(index, kept[i].by_job.job), &kept[i]);
    for (size_t i = 0; i < COUNT; i += 2)
        job_index_remove(&kept[i].by_job);
    for (size_t i = 0; i < COUNT; i++)
        assert_ptr_equal(job_index_find(index, kept[i].by_job.job), i % 2 ? &kept[i] : NULL);
}

static void another_name_is_not_found(void **state)
{
    (void)state;
    AUTO_FREE struct job_index *index = calloc(1, sizeof(*index));
    struct kept one;
    assert_non_null(index);
    assert_null(job_index_find(index, slice_from_str("")));
    keep(index, &one, 1);
    assert_null(job_index_find(index, slice_from_str("run:g/")));
    assert_null(job_index_find(index, slice_from_str("run:g/10")));
    assert_ptr_equal(job_index_find(index, slice_from_str("run:g/1")), &one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_found_though_many_share_a_bucket),
        cmocka_unit_test(another_name_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
