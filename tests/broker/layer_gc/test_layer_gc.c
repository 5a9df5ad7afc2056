/* The store of layers: what nobody needs goes, and nothing else does. */
#include "tests/broker/ledger/ledger_world.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "broker/layer_gc/layer_gc.h"
#include "broker/layer_gc/layer_store.h"
#include "common/base/clock.h"

enum { HOUR_S = 3600 };

static atomic_bool never_stop;

/* ---- layers, by a letter ----------------------------------------------------------------------- */

static const char *hex_of(char letter)
{
    static char hex[65];
    memset(hex, letter, 64);
    return hex;
}

static struct slice digest_of_letter(char letter)
{
    static char digests[8][80];
    static unsigned next;
    char *digest = digests[next++ % 8];
    snprintf(digest, 80, "sha256:%s", hex_of(letter));
    return S(digest);
}

static void write_file(const char *path, int64_t age_s)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    struct timespec at = {.tv_sec = clock_wall_ms() / 1000 - age_s};
    assert_true(fd >= 0 && write(fd, "0123456789", 10) == 10);
    assert_int_equal(futimens(fd, (struct timespec[]){at, at}), 0);
}

static const char *path_of(const struct world *world, char letter)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/store/%.2s/%s.tar.lz4", world->dir, hex_of(letter), hex_of(letter));
    return path;
}

static void put(const struct world *world, char letter, int64_t age_s)
{
    char shelf[128];
    snprintf(shelf, sizeof(shelf), "%s/store", world->dir);
    mkdir(shelf, 0755);
    snprintf(shelf, sizeof(shelf), "%s/store/%.2s", world->dir, hex_of(letter));
    mkdir(shelf, 0755);
    write_file(path_of(world, letter), age_s);
}

static bool is_there(const struct world *world, char letter) { return access(path_of(world, letter), F_OK) == 0; }

/* ---- sweeping by hand ----------------------------------------------------------------------------- */

static int read_ledger(void *context, struct needed_layers *ret, struct fail *fail)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/ledger.db", ((const struct world *)context)->dir);
    return needed_layers_read(path, &never_stop, ret, fail);
}

static int read_nothing(void *context, struct needed_layers *ret, struct fail *fail)
{
    (void)context, (void)fail;
    *ret = (struct needed_layers){0};
    return 0;
}

static int sweep_by(struct world *world, struct layer_sweep *sweep, struct fail *fail)
{
    static char store[96];
    snprintf(store, sizeof(store), "%s/store", world->dir);
    sweep->store = store;
    sweep->before_s = clock_wall_ms() / 1000 - HOUR_S;
    sweep->context = world;
    sweep->stop = &never_stop;
    return layer_store_sweep(sweep, fail);
}

static uint64_t sweep(struct world *world, int (*needed)(void *, struct needed_layers *, struct fail *))
{
    struct fail fail = {0};
    struct layer_sweep sweep = {.read_needed = needed};
    if (sweep_by(world, &sweep, &fail) != 0)
        fail_msg("%s", fail.text);
    assert_int_equal(sweep.freed_bytes, 10 * sweep.freed_layers);
    assert_int_equal(sweep.bytes, 10 * sweep.layers);
    return sweep.freed_layers;
}

static struct effect run_stored(const char *rollout, char letter)
{
    struct effect run = run_of(rollout, S("record"));
    run.layer_digest = digest_of_letter(letter);
    run.layer = (struct slice){0};
    return run;
}

static void layers_of_what_has_not_ended_stay(void **state)
{
    struct world *world = *state;
    const struct effect begin[] = {
        group("g", "train", 2), init_of("g", digest_of_letter('a'), (struct slice){0}),
        run_stored("g/0", 'b'), run_stored("g/1", 'c'),
        group("h", "train", 1), init_of("h", digest_of_letter('d'), (struct slice){0}),
        group("i", "train", 1), init_of("i", digest_of_letter('e'), S("inline, not in the store"))};
    commit(world, begin, sizeof(begin) / sizeof(*begin));
    for (char letter = 'a'; letter <= 'f'; letter++)
        put(world, letter, 2 * HOUR_S);
    assert_int_equal(sweep(world, read_ledger), 2); /* nobody's, and the inline one's name */
    assert_true(is_there(world, 'a') && is_there(world, 'b') && is_there(world, 'c'));
    assert_true(is_there(world, 'd') && !is_there(world, 'e') && !is_there(world, 'f'));

    commit_one(world, end_of("train", 1, "g", "g/0"));
    assert_int_equal(sweep(world, read_ledger), 1);
    assert_true(is_there(world, 'a') && !is_there(world, 'b') && is_there(world, 'c'));

    commit_one(world, end_of("train", 2, "g", "g/1"));
    reopen(world);
    assert_int_equal(sweep(world, read_ledger), 2);
    assert_true(!is_there(world, 'a') && !is_there(world, 'c') && is_there(world, 'd'));
}

static void what_is_acknowledged_and_forgotten_in_part_still_counts_as_ended(void **state)
{
    struct world *world = *state;
    const struct effect all[] = {group("g", "train", 3),         init_of("g", digest_of_letter('a'), (struct slice){0}),
                                 run_stored("g/0", 'b'),         run_stored("g/1", 'b'), /* two that left the same */
                                 end_of("train", 1, "g", "g/0"), ack("train", 1)};
    commit(world, all, sizeof(all) / sizeof(*all));
    commit_one(world, end_of("train", 2, "g", "g/2")); /* and the first is swept */
    put(world, 'a', 2 * HOUR_S);
    put(world, 'b', 2 * HOUR_S);
    assert_int_equal(sweep(world, read_ledger), 0); /* g/1 goes on, with both */
    commit_one(world, end_of("train", 3, "g", "g/1"));
    assert_int_equal(sweep(world, read_ledger), 2);
}

static void a_group_whose_id_was_taken_again_needs_its_own_layers_only(void **state)
{
    struct world *world = *state;
    const struct effect all[] = {group("g", "train", 1), init_of("g", digest_of_letter('a'), (struct slice){0}),
                                 end_of("train", 1, "g", "g/0"), group("g", "train", 1),
                                 init_of("g", digest_of_letter('b'), (struct slice){0})};
    commit(world, all, sizeof(all) / sizeof(*all));
    put(world, 'a', 2 * HOUR_S);
    put(world, 'b', 2 * HOUR_S);
    assert_int_equal(sweep(world, read_ledger), 1);
    assert_true(!is_there(world, 'a') && is_there(world, 'b'));
}

static void what_is_young_stays(void **state)
{
    struct world *world = *state;
    put(world, 'a', HOUR_S - 60);
    put(world, 'b', HOUR_S + 60);
    assert_int_equal(sweep(world, read_nothing), 1);
    assert_true(is_there(world, 'a') && !is_there(world, 'b'));
}

/* Stands for a worker that packs the same layer just now. */
static int touch_meanwhile(void *context, struct needed_layers *ret, struct fail *fail)
{
    assert_int_equal(utimensat(AT_FDCWD, path_of(context, 'a'), NULL, 0), 0);
    return read_nothing(context, ret, fail);
}

static void what_a_worker_touches_meanwhile_stays(void **state)
{
    struct world *world = *state;
    put(world, 'a', 2 * HOUR_S);
    assert_int_equal(sweep(world, touch_meanwhile), 0);
    assert_true(is_there(world, 'a'));
    assert_int_equal(sweep(world, read_nothing), 0);
}

static void a_removal_that_was_cut_short_is_undone(void **state)
{
    struct world *world = *state;
    char aside[256];
    put(world, 'a', 2 * HOUR_S);
    snprintf(aside, sizeof(aside), "%s/store/aa/.going.%s.tar.lz4", world->dir, hex_of('a'));
    assert_int_equal(rename(path_of(world, 'a'), aside), 0);
    sweep(world, read_nothing);
    assert_int_equal(access(aside, F_OK), -1);
    while (is_there(world, 'a'))
        assert_int_equal(sweep(world, read_nothing), 1);
}

static void only_what_is_named_like_a_layer_is_touched(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"aa/notes.txt", "aa/bbbb.tar.lz4", "zz",
                                        ".packing.x",   "aa/.packing.x",   "other"};
    char path[256], outside[128], link[256];
    put(world, 'a', 2 * HOUR_S);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/store/%s", world->dir, names[i]);
        write_file(path, 2 * HOUR_S);
    }
    /* a layer's name on the wrong shelf, one more letter, a directory, and links to a layer and to a shelf */
    snprintf(path, sizeof(path), "%s/store/aa/%s.tar.lz4", world->dir, hex_of('b'));
    write_file(path, 2 * HOUR_S);
    snprintf(path, sizeof(path), "%s/store/aa/%sa.tar.lz4", world->dir, hex_of('a'));
    write_file(path, 2 * HOUR_S);
    snprintf(outside, sizeof(outside), "%s/outside", world->dir);
    assert_int_equal(mkdir(outside, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s.tar.lz4", outside, hex_of('c'));
    write_file(path, 2 * HOUR_S);
    snprintf(link, sizeof(link), "%s/store/cc", world->dir);
    assert_int_equal(symlink(outside, link), 0);
    put(world, 'd', 2 * HOUR_S);
    assert_int_equal(unlink(path_of(world, 'd')), 0);
    assert_int_equal(symlink(path, path_of(world, 'd')), 0);
    assert_int_equal(utimensat(AT_FDCWD, path_of(world, 'd'), (struct timespec[]){{1, 0}, {1, 0}}, AT_SYMLINK_NOFOLLOW),
                     0);

    assert_int_equal(sweep(world, read_nothing), 1);
    assert_false(is_there(world, 'a'));
    assert_int_equal(access(path, F_OK), 0);
    assert_true(is_there(world, 'd'));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/store/%s", world->dir, names[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
}

static void a_ledger_that_cannot_be_read_deletes_nothing(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    char path[96];
    put(world, 'a', 2 * HOUR_S);
    ledger_close(&world->ledger);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    assert_int_equal(truncate(path, 100), 0);
    struct layer_sweep sweep = {.read_needed = read_ledger};
    assert_int_equal(sweep_by(world, &sweep, &fail), -EIO);
    assert_non_null(strstr(fail.text, "cannot read the ledger"));
    assert_int_equal(sweep.freed_layers, 0);
    assert_int_equal(sweep.layers, 1);
    assert_true(is_there(world, 'a'));
}

/* ---- whose it is ------------------------------------------------------------------------------------ */

static void a_store_belongs_to_one_broker(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    char store[96], other[96], moved[96], owner[128];
    snprintf(store, sizeof(store), "%s/store", world->dir);
    snprintf(other, sizeof(other), "%s/other", world->dir);
    snprintf(moved, sizeof(moved), "%s/moved", world->dir);
    assert_int_equal(mkdir(other, 0755), 0);
    assert_int_equal(layer_store_claim(store, world->dir, &fail), 0);
    assert_int_equal(layer_store_claim(store, world->dir, &fail), 0);
    assert_int_equal(layer_store_claim(store, other, &fail), -EBUSY);
    char expected[160];
    snprintf(expected, sizeof(expected), "belongs to the broker whose data is %s: ", world->dir);
    assert_non_null(strstr(fail.text, expected));
    snprintf(owner, sizeof(owner), "%s/" LAYER_STORE_OWNER_FILE, store);
    assert_non_null(strstr(fail.text, owner));

    assert_int_equal(unlink(owner), 0); /* as the sentence says */
    assert_int_equal(layer_store_claim(store, other, &fail), 0);
    assert_int_equal(rename(other, moved), 0); /* the data may move */
    assert_int_equal(layer_store_claim(store, moved, &fail), 0);
    assert_int_equal(layer_store_claim(store, world->dir, &fail), -EBUSY);
}

/* ---- the thread --------------------------------------------------------------------------------------- */

/* Until `freed` layers went, or ten seconds. */
static void await_freed(struct layer_gc *gc, uint64_t freed)
{
    struct layer_gc_view view;
    for (int64_t end = clock_ms() + 10000; clock_ms() < end; poll(NULL, 0, 10)) {
        layer_gc_see(gc, &view);
        if (view.freed_layers >= freed)
            break;
    }
    assert_int_equal(view.state, LAYER_GC_TENDED);
    assert_int_equal(view.freed_layers, freed);
}

static void what_nobody_needs_goes_after_the_grace_and_not_before(void **state)
{
    struct world *world = *state;
    struct layer_gc *gc = NULL;
    struct layer_gc_view view;
    struct fail fail = {0};
    char dir[96];
    snprintf(dir, sizeof(dir), "%s/store", world->dir);
    put(world, 'a', 2 * HOUR_S);
    put(world, 'b', 2 * HOUR_S);
    const struct effect live[] = {group("g", "train", 1), init_of("g", digest_of_letter('b'), (struct slice){0})};
    commit(world, live, 2);
    const struct layer_gc_options options = {.dir = dir, .data_dir = world->dir, .grace_ms = 2000};
    int64_t start_ms = clock_ms();
    if (layer_gc_start(&gc, &options, &fail) != 0)
        fail_msg("%s", fail.text);
    await_freed(gc, 1);
    assert_true(clock_ms() - start_ms >= 1990); /* the grace of the start */
    assert_true(!is_there(world, 'a') && is_there(world, 'b'));
    commit_one(world, end_of("train", 1, "g", "g/0"));
    await_freed(gc, 2);
    layer_gc_see(gc, &view);
    assert_int_equal(view.error.code, 0);
    assert_int_equal(view.freed_bytes, 20);
    layer_gc_stop(&gc);
    assert_null(gc);
}

static void a_store_of_another_broker_is_refused_at_the_start(void **state)
{
    struct world *world = *state;
    struct layer_gc *gc = NULL;
    struct fail fail = {0};
    char dir[96], other[96];
    snprintf(dir, sizeof(dir), "%s/store", world->dir);
    snprintf(other, sizeof(other), "%s/other", world->dir);
    assert_int_equal(mkdir(other, 0755), 0);
    assert_int_equal(layer_store_claim(dir, other, &fail), 0);
    const struct layer_gc_options options = {.dir = dir, .data_dir = world->dir, .grace_ms = 1000};
    assert_int_equal(layer_gc_start(&gc, &options, &fail), -EBUSY);
    assert_null(gc);
    assert_non_null(strstr(fail.text, "belongs to the broker"));
}

static void a_store_that_is_not_there_yet_is_made_and_one_that_cannot_be_is_an_error(void **state)
{
    struct world *world = *state;
    struct layer_gc *gc = NULL;
    struct layer_gc_view view;
    struct fail fail = {0};
    char dir[96];
    snprintf(dir, sizeof(dir), "%s/ledger.db/store", world->dir);
    struct layer_gc_options options = {.dir = dir, .data_dir = world->dir, .grace_ms = 1000};
    assert_int_equal(layer_gc_start(&gc, &options, &fail), 0);
    layer_gc_see(gc, &view);
    assert_int_equal(view.state, LAYER_GC_SILENT);
    assert_int_equal(view.error.code, -ENOTDIR);
    layer_gc_stop(&gc);
    snprintf(dir, sizeof(dir), "%s/store", world->dir);
    assert_int_equal(layer_gc_start(&gc, &options, &fail), 0);
    await_freed(gc, 0);
    layer_gc_stop(&gc);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(layers_of_what_has_not_ended_stay),
        TEST(what_is_acknowledged_and_forgotten_in_part_still_counts_as_ended),
        TEST(a_group_whose_id_was_taken_again_needs_its_own_layers_only),
        TEST(what_is_young_stays),
        TEST(what_a_worker_touches_meanwhile_stays),
        TEST(a_removal_that_was_cut_short_is_undone),
        TEST(only_what_is_named_like_a_layer_is_touched),
        TEST(a_ledger_that_cannot_be_read_deletes_nothing),
        TEST(a_store_belongs_to_one_broker),
        TEST(what_nobody_needs_goes_after_the_grace_and_not_before),
        TEST(a_store_of_another_broker_is_refused_at_the_start),
        TEST(a_store_that_is_not_there_yet_is_made_and_one_that_cannot_be_is_an_error),
    };
    return cmocka_run_group_tests_name("layer_gc", tests, NULL, NULL);
}
