/* The cache of unpacked layers: shared by who asks, swept of what is idle, and held to its limit. */
#include "tests/workers/layers/layer_making.h"
#include "tests/workers/layers/file_clock.h"

#include <sys/file.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/layers/cache.h"
#include "workers/layers/dir.h"
#include "workers/layers/sweep.h"

/* ---- sharing --------------------------------------------------------------------------------- */

static struct layer shared;
static char *shared_paths[4];
static int shared_ended;
static struct fiber *shared_waiter;

static void unpack_shared(void *arg) { shared_paths[(intptr_t)arg] = unpack(&shared); }

static void shared_end(void *arg)
{
    (void)arg;
    shared_ended++;
    fiber_wake(shared_waiter);
}

FIBER_TEST(four_at_once_end_in_one_directory)
{
    shared = make_layer(NULL, "for i in $(seq 200); do echo $i > f$i; done");
    shared_ended = 0;
    shared_waiter = fiber_current();
    for (intptr_t i = 0; i < 4; i++)
        assert_non_null(fiber_start(loop, unpack_shared, shared_end, (void *)i));
    while (shared_ended < 4)
        assert_int_equal(await_wake(-1), 0);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(shared_paths[i], shared_paths[0]);
        if (i > 0)
            free(shared_paths[i]);
    }
    assert_int_equal(count_entries(cache), 1);
    free(shared_paths[0]);
    layer_finish(&shared);
}

static int cancelled_code;

static void unpack_cancelled(void *arg)
{
    char *path = NULL;
    struct fail fail;
    (void)arg;
    cancelled_code = layer_unpack(&layers, shared.digest, buffer_peek(&shared.inlined), &path, &fail);
    free(path);
}

/* A layer of MANY empty files. */
enum { MANY = 20000 };

static struct layer make_many(void)
{
    struct tar_entry *entries = calloc(MANY, sizeof(*entries));
    char(*names)[16] = calloc(MANY, sizeof(*names));
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "f%d", i);
        entries[i] = (struct tar_entry){.path = names[i], .type = '0', .mode = 0644};
    }
    struct layer layer = make_by_hand(entries, MANY);
    free(entries);
    free(names);
    return layer;
}

FIBER_TEST(a_cancelled_unpack_stops_and_leaves_nothing)
{
    shared = make_many();
    shared_ended = 0;
    shared_waiter = fiber_current();
    struct fiber *fiber = fiber_start(loop, unpack_cancelled, shared_end, NULL);
    assert_int_equal(await_sleep(0), 0); /* it begins */
    fiber_cancel(fiber);
    while (shared_ended < 1)
        assert_int_equal(await_wake(-1), 0);
    assert_int_equal(cancelled_code, -ECANCELED);
    assert_int_equal(count_entries(cache), 0);
    layer_finish(&shared);
}

FIBER_TEST(the_loop_goes_on_while_a_layer_is_unpacked)
{
    shared = make_many();
    shared_ended = 0;
    shared_waiter = fiber_current();
    assert_non_null(fiber_start(loop, unpack_shared, shared_end, (void *)0));
    int turns = 0;
    for (; shared_ended < 1; turns++)
        await_wake(1);
    assert_true(turns >= 5);
    assert_int_equal(count_entries(shared_paths[0]), MANY);
    free(shared_paths[0]);
    layer_finish(&shared);
}

/* What a power failure leaves: a name, and files without their bytes. */
FIBER_TEST(what_was_unpacked_before_the_machine_started_is_unpacked_anew)
{
    static const char *const marks[] = {"6d1b9eb4-0000-4000-8000-7f3f1b0f6c6f\n", NULL};
    struct layer layer = make_layer(NULL, "echo whole > f");
    char *path = unpack(&layer), file[512];
    uint64_t bytes = layer_cache_bytes(&layers);
    snprintf(file, sizeof(file), "%s/workspace/f", path);
    *strrchr(path, '/') = '\0'; /* the directory that is held */
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        struct stat it;
        assert_int_equal(truncate(file, 0), 0);
        free(unpack(&layer));
        assert_int_equal(stat(file, &it), 0);
        assert_int_equal(it.st_size, 0); /* one of this boot is not looked into */
        if (marks[i])
            assert_int_equal(setxattr(path, "user.sluice.boot", marks[i], strlen(marks[i]), 0), 0);
        else
            assert_int_equal(removexattr(path, "user.sluice.boot"), 0);
        free(unpack(&layer));
        assert_int_equal(stat(file, &it), 0);
        assert_int_equal(it.st_size, strlen("whole\n"));
        assert_int_equal(count_entries(cache), 1);
        assert_int_equal(layer_cache_bytes(&layers), bytes);
    }
    free(path);
    layer_finish(&layer);
}

/* Who still stands on it keeps it, and the next has another. */
FIBER_TEST(what_was_changed_is_taken_out_of_the_cache_and_unpacked_anew)
{
    struct layer layer = make_layer(NULL, "mkdir d; echo whole > d/f; echo more > d/g");
    struct layer_dir old, new;
    struct fail fail = {0};
    char file[512];
    uint64_t bytes;
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &old, &fail), 0);
    bytes = layer_cache_bytes(&layers);
    assert_int_equal(layer_dir_look(&old, &fail), 0);
    snprintf(file, sizeof(file), "%s/workspace/d/f", old.path);
    file_clock_tick(directory);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(layer_dir_look(&old, &fail), -ESTALE);
    assert_non_null(strstr(fail.text, "workspace/d has other entries"));
    assert_int_equal(layer_dir_look(&old, &fail), -ENODEV);
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &new, &fail), 0);
    assert_int_equal(layer_dir_look(&new, &fail), 0);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(count_entries(cache), 2);
    layer_dir_discard(&old);
    layer_cache_sweep(&layers, clock_wall_ms() / 1000);
    assert_int_equal(layer_dir_look(&new, &fail), 0);
    assert_int_equal(count_entries(cache), 1);
    assert_int_equal(layer_cache_bytes(&layers), bytes);
    layer_dir_release(&new);
    layer_finish(&layer);
}

/* Another release's: files in <cache>/<hex> itself, of this boot. */
FIBER_TEST(a_layer_that_an_earlier_release_unpacked_is_unpacked_anew)
{
    struct layer layer = make_layer(NULL, "echo whole > f");
    char boot[64] = "", holder[256];
    AUTO_CLOSE int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = read(file, boot, sizeof(boot));
    snprintf(holder, sizeof(holder), "%s/%s", cache, layer.digest + 7);
    assert_int_equal(mkdir(holder, 0700), 0);
    write_host_file(holder, "f", "whole", 0644);
    assert_int_equal(setxattr(holder, "user.sluice.boot", boot, (size_t)len, 0), 0);
    AUTO_FREE char *path = unpack(&layer);
    snprintf(holder, sizeof(holder), "%s/workspace/f", path);
    assert_int_equal(access(holder, F_OK), 0);
    layer_finish(&layer);
}

FIBER_TEST(a_directory_goes_when_the_last_who_holds_it_discards_it)
{
    struct layer layer = make_layer(NULL, "mkdir d; touch d/f; chmod 0 d");
    struct layer_dir a, b;
    struct fail fail = {0};
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &a, &fail), 0);
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &b, &fail), 0);
    layer_dir_discard(&a);
    assert_int_equal(access(b.path, F_OK), 0);
    layer_dir_discard(&b);
    assert_int_equal(count_entries(cache), 0);
    assert_null(b.path);
    layer_finish(&layer);
}

FIBER_TEST(what_is_idle_is_swept_and_what_is_held_stays)
{
    struct layer layer = make_layer(NULL, "touch f"), other = make_layer(NULL, "touch g");
    struct layer_dir held, own;
    struct fail fail = {0};
    int64_t now_s = clock_wall_ms() / 1000;
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &held, &fail), 0);
    assert_int_equal(layer_dir_make(cache, &own, &fail), 0);
    free(unpack(&other));
    write_host_file(store, ".packing.abcdef", "half", 0600);
    layer_cache_sweep(&layers, now_s);
    assert_int_equal(count_entries(cache), 3);
    assert_int_equal(count_entries(store), 1);
    layer_cache_sweep(&layers, now_s + LAYER_IDLE_S + 10);
    assert_int_equal(count_entries(cache), 2);
    assert_int_equal(count_entries(store), 0);
    assert_int_equal(access(held.path, F_OK) + access(own.path, F_OK), 0);
    layer_dir_release(&held);
    layer_dir_discard(&own);
    layer_cache_sweep(&layers, now_s + LAYER_IDLE_S + 10);
    assert_int_equal(count_entries(cache), 0);
    layer_finish(&layer);
    layer_finish(&other);
}

/* What a killed worker was removing: at once, under the name that it has. */
FIBER_TEST(what_was_being_removed_is_swept_at_once_unless_its_remover_lives)
{
    char dead[256], alive[256];
    snprintf(dead, sizeof(dead), "%s/ab.tmp.gone-1", cache);
    snprintf(alive, sizeof(alive), "%s/ab.tmp.gone-2", cache);
    assert_int_equal(mkdir(dead, 0700) + mkdir(alive, 0700), 0);
    write_host_file(dead, "f", "left", 0);
    AUTO_CLOSE int remover = open(alive, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(remover, LOCK_EX), 0);
    layer_cache_sweep(&layers, clock_wall_ms() / 1000);
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(alive, F_OK), 0);
    assert_int_equal(count_entries(cache), 1);
}

/* ---- the limit of the cache ------------------------------------------------------------------ */

/* A layer of one file of 256 KiB that shrinks to little, told apart by `name`. */
static struct layer make_quarter(const char *name)
{
    char command[128];
    snprintf(command, sizeof(command), "head -c 262144 /dev/zero > %s", name);
    return make_layer(NULL, command);
}

static bool is_unpacked(const struct layer *layer)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", cache, layer->digest + 7);
    return access(path, F_OK) == 0;
}

FIBER_TEST(beyond_the_limit_the_least_recently_used_go_but_none_that_is_held)
{
    enum { COUNT = 6 };
    const struct layers small = {.store = store, .cache = cache, .cache_bytes = 1 << 20};
    struct layer made[COUNT];
    struct layer_dir held, dir;
    struct fail fail = {0};
    for (int i = 0; i < COUNT; i++) {
        char name[8];
        snprintf(name, sizeof(name), "f%d", i);
        made[i] = make_quarter(name);
    }
    const struct slice first = buffer_peek(&made[0].inlined);
    assert_int_equal(layer_dir_hold(&small, made[0].digest, first, &held, &fail), 0);
    for (int i = 1; i < COUNT; i++) {
        assert_int_equal(layer_dir_hold(&small, made[i].digest, buffer_peek(&made[i].inlined), &dir, &fail), 0);
        layer_dir_release(&dir);
        assert_true(layer_cache_bytes(&small) <= small.cache_bytes);
    }
    assert_true(is_unpacked(&made[0]) && access(held.path, F_OK) == 0); /* the oldest */
    assert_false(is_unpacked(&made[1]));
    assert_true(is_unpacked(&made[COUNT - 1]));
    layer_dir_discard(&held);
    layer_cache_sweep(&small, clock_wall_ms() / 1000 + LAYER_IDLE_S + 10);
    assert_int_equal(count_entries(cache), 0);
    assert_int_equal(layer_cache_bytes(&small), 0);
    for (int i = 0; i < COUNT; i++)
        layer_finish(&made[i]);
}

FIBER_TEST(a_count_that_was_lost_is_set_right)
{
    const struct layers small = {.store = store, .cache = cache, .cache_bytes = 1 << 20};
    struct layer one = make_quarter("one"), two = make_quarter("two");
    free(unpack(&one));
    uint64_t bytes = layer_cache_bytes(&small);
    assert_true(bytes > 262144 && bytes < 300000);
    write_host_file(cache, ".usage", "99999999999", 0644);
    layer_cache_trim(&small);
    assert_int_equal(layer_cache_bytes(&small), bytes);
    free(unpack(&two));
    write_host_file(cache, ".usage", "99999999999999999999999 and nonsense", 0644);
    layer_cache_sweep(&small, clock_wall_ms() / 1000);
    assert_int_equal(layer_cache_bytes(&small), 2 * bytes);
    layer_finish(&one);
    layer_finish(&two);
}

/* Needs a disk of its own. */
FIBER_TEST(a_full_disk_is_swept_and_tried_once_more)
{
    char path[256];
    struct fail fail = {0};
    struct layer_dir held;
    if (geteuid() != 0) { /* skip() would leave the fiber by a jump */
        print_message("needs root for a disk of its own\n");
        return;
    }
    struct layer one = make_quarter("one"), two = make_quarter("two"),
                 big = make_layer(NULL, "head -c 2000000 /dev/zero > big"), last = make_quarter("last");
    assert_int_equal(mount("none", cache, "tmpfs", 0, "size=1m,mode=0755"), 0);
    free(unpack(&one));
    free(unpack(&two));
    snprintf(path, sizeof(path), "%s/ballast", cache);
    AUTO_CLOSE int ballast = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(posix_fallocate(ballast, 0, 400000), 0);
    assert_int_equal(layer_dir_hold(&layers, last.digest, buffer_peek(&last.inlined), &held, &fail), 0);
    assert_false(is_unpacked(&one)); /* the older half made room */
    int code = layer_unpack(&layers, big.digest, buffer_peek(&big.inlined), &(char *){NULL}, &fail);
    assert_int_equal(code, -ENOSPC);
    assert_int_equal(layer_fault(code), FAULT_NODE);
    assert_non_null(strstr(fail.text, "no room for the layer sha256:"));
    assert_non_null(strstr(fail.text, cache));
    assert_true(is_unpacked(&last)); /* held */
    layer_dir_release(&held);
    assert_int_equal(umount2(cache, MNT_DETACH), 0);
    layer_finish(&one), layer_finish(&two), layer_finish(&big), layer_finish(&last);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        LAYER_TEST(four_at_once_end_in_one_directory),
        LAYER_TEST(a_cancelled_unpack_stops_and_leaves_nothing),
        LAYER_TEST(the_loop_goes_on_while_a_layer_is_unpacked),
        LAYER_TEST(what_was_changed_is_taken_out_of_the_cache_and_unpacked_anew),
        LAYER_TEST(a_layer_that_an_earlier_release_unpacked_is_unpacked_anew),
        LAYER_TEST(a_directory_goes_when_the_last_who_holds_it_discards_it),
        LAYER_TEST(what_was_unpacked_before_the_machine_started_is_unpacked_anew),
        LAYER_TEST(what_is_idle_is_swept_and_what_is_held_stays),
        LAYER_TEST(what_was_being_removed_is_swept_at_once_unless_its_remover_lives),
        LAYER_TEST(beyond_the_limit_the_least_recently_used_go_but_none_that_is_held),
        LAYER_TEST(a_count_that_was_lost_is_set_right),
        LAYER_TEST(a_full_disk_is_swept_and_tried_once_more),
    };
    return cmocka_run_group_tests_name("layer_cache", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
