/* A store on a file system that does not answer: the broker starts, goes on and stops all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "broker/layer_gc/store.h"
#include "broker/layer_gc/store_files.h"
#include "common/base/clock.h"

static int pipe_ends[2];

int __wrap_store_files_claim(const char *store, const char *data_dir, struct fail *fail);

/* Hangs until the test lets go of it. */
int __wrap_store_files_claim(const char *store, const char *data_dir, struct fail *fail)
{
    char byte;
    (void)store, (void)data_dir;
    return read(pipe_ends[0], &byte, 1) == 1 ? 0 : fail_set(fail, -EIO, "gone");
}

static void a_store_that_hangs_holds_nobody_up(void **state)
{
    struct store *store = NULL;
    struct store_view view;
    struct fail fail = {0};
    (void)state;
    assert_int_equal(pipe(pipe_ends), 0);
    const struct store_options options = {.dir = "/no/store", .data_dir = "/tmp", .grace_ms = 1000};
    int64_t begin_ms = clock_ms();
    assert_int_equal(store_start(&store, &options, &fail), 0);
    assert_true(clock_ms() - begin_ms < 5000);
    begin_ms = clock_ms();
    store_see(store, &view);
    assert_true(clock_ms() - begin_ms < 100);
    assert_int_equal(view.state, STORE_SILENT);
    store_stop(&store);
    assert_true(clock_ms() - begin_ms < 5000);
    assert_null(store);
    assert_int_equal(write(pipe_ends[1], "x", 1), 1); /* the thread ends by itself */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_store_that_hangs_holds_nobody_up)};
    return cmocka_run_group_tests_name("store hangs", tests, NULL, NULL);
}
