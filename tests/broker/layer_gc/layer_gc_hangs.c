/* A store on a file system that does not answer: the broker starts, goes on and stops all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "broker/layer_gc/layer_gc.h"
#include "broker/layer_gc/layer_store.h"
#include "common/base/clock.h"

static int pipe_ends[2];

int __wrap_layer_store_claim(const char *store, const char *data_dir, struct fail *fail);

/* Hangs until the test lets go of it. */
int __wrap_layer_store_claim(const char *store, const char *data_dir, struct fail *fail)
{
    char byte;
    (void)store, (void)data_dir;
    return read(pipe_ends[0], &byte, 1) == 1 ? 0 : fail_set(fail, -EIO, "gone");
}

static void a_store_that_hangs_holds_nobody_up(void **state)
{
    struct layer_gc *gc = NULL;
    struct layer_gc_view view;
    struct fail fail = {0};
    (void)state;
    assert_int_equal(pipe(pipe_ends), 0);
    const struct layer_gc_options options = {.dir = "/no/store", .data_dir = "/tmp", .grace_ms = 1000};
    int64_t begin_ms = clock_ms();
    assert_int_equal(layer_gc_start(&gc, &options, &fail), 0);
    assert_true(clock_ms() - begin_ms < 5000);
    begin_ms = clock_ms();
    layer_gc_see(gc, &view);
    assert_true(clock_ms() - begin_ms < 100);
    assert_int_equal(view.state, LAYER_GC_SILENT);
    layer_gc_stop(&gc);
    assert_true(clock_ms() - begin_ms < 5000);
    assert_null(gc);
    assert_int_equal(write(pipe_ends[1], "x", 1), 1); /* the thread ends by itself */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_store_that_hangs_holds_nobody_up)};
    return cmocka_run_group_tests_name("layer_gc hangs", tests, NULL, NULL);
}
