/* A worker's images: prepared by a process of its own, waited for by all who want it, held. */
#include "tests/workers/images/image_fixture.h"
#include "tests/workers/layers/file_clock.h"

#include <dirent.h>

#include "common/base/clock.h"
#include "common/files/dirtree_remove.h"
#include "workers/files/locked_dir.h"
#include "workers/images/images.h"
#include "workers/sandbox/spawner_start.h"

static char cache[128];
static struct images *images;
static struct image_list offered;

static int set_up_worker(void **state)
{
    if (set_up(state) < 0)
        return -1;
    make_dir(cache, sizeof(cache), "cache");
    struct fail fail = {0};
    images = images_create(loop, cache, 0, &offered);
    char fixtures[4096];
    snprintf(fixtures, sizeof(fixtures), "%s/tests/workers/images/fixtures", getenv("SLUICE_SOURCE_DIR"));
    return images && image_list_add(&offered, directory, &fail) == 0 &&
                   image_list_add(&offered, fixtures, &fail) == 0 && image_list_keep(&offered, cache, &fail) == 0 &&
                   image_list_use_cache(&offered, cache, &fail) == 0
               ? 0
               : -1;
}

static int tear_down_worker(void **state)
{
    images_destroy(&images);
    image_list_finish(&offered);
    spawner_stop(&spawner);
    loop_destroy(&loop);
    (void)state;
    return dirtree_remove(directory);
}

static struct image_hold hold(const char *name)
{
    struct image_hold it = {0};
    struct fail fail = {0};
    if (images_hold(images, name, &it, &fail) < 0)
        fail_msg("%s: %s", name, fail.text);
    return it;
}

static const char *copy_of_plain(const char *name)
{
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    return write_image(name, data, size);
}

static void expect_root(const struct image_hold *it)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/etc/motd", it->path);
    expect_file(path, "hello\n");
}

static bool is_held(const struct image_hold *it)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s", it->path);
    *strrchr(path, '/') = '\0';
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 || !locked_dir_remove(dir, path);
}

FIBER_TEST(a_sif_becomes_a_directory_that_stays_while_it_is_held)
{
    const char *name = copy_of_plain("a.sif");
    struct image_hold first = hold(name), second = hold(name);
    expect_root(&first);
    assert_string_equal(first.path, second.path);
    image_hold_release(&first);
    assert_true(is_held(&second));
    char *path = strdup(second.path);
    struct image_hold gone = {.path = path, .lock = -1};
    image_hold_release(&second);
    assert_false(is_held(&gone)); /* and now it is removed */
    struct image_hold again = hold(name);
    assert_string_equal(again.path, path);
    expect_root(&again);
    image_hold_release(&again);
    free(path);
}

FIBER_TEST(directories_and_the_host_are_what_they_are)
{
    char root[128];
    make_dir(root, sizeof(root), "root");
    struct image_hold host = hold("host"), plain = hold(root);
    assert_string_equal(host.path, "host");
    assert_string_equal(plain.path, root);
    assert_true(host.lock < 0 && plain.lock < 0);
    image_hold_release(&host);
    image_hold_release(&plain);
    assert_false(is_there(in_directory("cache/images"))); /* no process was needed */
}

/* Many are faster than any look at the image's own file system could be: it is gone. */
FIBER_TEST(a_warm_image_costs_no_process_and_no_look_at_the_image)
{
    enum { TIMES = 200 };
    const char *name = copy_of_plain("a.sif");
    struct image_hold first = hold(name);
    assert_int_equal(unlink(name), 0);
    int64_t began_us = clock_us();
    for (int i = 0; i < TIMES; i++) {
        struct image_hold it = hold(name);
        assert_string_equal(it.path, first.path);
        image_hold_release(&it);
    }
    int64_t each_ns = (clock_us() - began_us) * 1000 / TIMES;
    print_message("a warm image: %lld ns\n", (long long)each_ns);
    assert_true(clock_us() - began_us < IMAGES_FRESH_MS * 1000);
    image_hold_release(&first);
}

/* ---- which may be named --------------------------------------------------------------------- */

static void expect_refused(const char *name, const char *words)
{
    struct image_hold it = {0};
    struct fail fail = {0};
    int code = images_hold(images, name, &it, &fail);
    if (code != -EINVAL || !strstr(fail.text, words) || !strstr(fail.text, "--images"))
        fail_msg("%s: %d %s", name, code, fail.text);
    assert_null(it.path);
}

static const char none_offered[] =
    "is not one that this worker offers: its operator lists directories of images with --images DIR";
static const char not_any[] = "is, holds or lies in what is the host's or the worker's own";

FIBER_TEST(only_images_that_the_operator_lists_may_be_named)
{
    char other[] = "/tmp/sluice-other-XXXXXX", inside[300], link[300];
    assert_non_null(mkdtemp(other));
    snprintf(link, sizeof(link), "%s/link", directory);
    snprintf(inside, sizeof(inside), "%s/../%s", directory, strrchr(other, '/') + 1);
    assert_int_equal(symlink(other, link), 0);
    expect_refused(other, none_offered);
    expect_refused(link, none_offered);                     /* a link leads out */
    expect_refused(inside, none_offered);                   /* and so does ".." */
    snprintf(inside, sizeof(inside), "%s-more", directory); /* begins alike, and is another */
    expect_refused(inside, none_offered);
    snprintf(inside, sizeof(inside), "%s/none/../../%s", directory, strrchr(other, '/') + 1);
    expect_refused(inside, none_offered);
    expect_refused("/no/such/image", none_offered);
    assert_int_equal(rmdir(other), 0);
}

FIBER_TEST(neither_the_hosts_own_nor_the_workers_may_be_named_whatever_is_listed)
{
    char below[256], link[256];
    struct fail fail = {0};
    static const char *const hosts[] = {"/",    "/proc",    "/proc/self/root", "/sys", "/dev",
                                        "/etc", "/etc/ssl", "/usr/local/etc",  "/..",  "//"};
    assert_true(image_list_add(&offered, "/tmp", &fail) == 0 && image_list_add(&offered, "/usr", &fail) == 0);
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        expect_refused(hosts[i], not_any);
    snprintf(below, sizeof(below), "%s/below", cache);
    assert_int_equal(mkdir(below, 0755), 0);
    snprintf(link, sizeof(link), "%s/to-the-cache", directory);
    assert_int_equal(symlink(cache, link), 0);
    expect_refused(cache, not_any);
    expect_refused(below, not_any);
    expect_refused(link, not_any);
    expect_refused(directory, not_any); /* it holds the cache */
    expect_refused("/tmp", not_any);
    const char *const lists[] = {"/", "/etc", "/proc", "/etc/ssl", "/no/such/directory", cache, below, link};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        assert_int_equal(image_list_add(&offered, lists[i], &fail), -EINVAL);
}

/* What the operator prepared may be named, though nothing is listed; as long as it leads where it led. */
FIBER_TEST(what_is_prepared_may_be_named_though_nothing_is_listed)
{
    const char *name = copy_of_plain("a.sif");
    struct image_hold made = hold(name);
    image_hold_release(&made);
    image_list_finish(&offered);
    struct fail fail = {0};
    images_destroy(&images);
    assert_int_equal(image_list_use_cache(&offered, cache, &fail), 0);
    images = images_create(loop, cache, 0, &offered);
    assert_non_null(images);
    struct image_hold again = hold(name);
    expect_root(&again);
    image_hold_release(&again);
    expect_refused(copy_of_plain("b.sif"), none_offered);
    struct image_hold host = hold("host");
    image_hold_release(&host);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static struct {
    const char *name;
    struct fiber *fibers[8], *observer;
    int codes[8], ended;
    char *paths[8];
} wanted;

static void want(void *arg)
{
    size_t i = (size_t)(intptr_t)arg;
    struct image_hold it = {0};
    struct fail fail = {0};
    if (i == 7)
        fiber_push_deadline(clock_ms() + 1);
    wanted.codes[i] = images_hold(images, wanted.name, &it, &fail);
    wanted.paths[i] = it.path ? strdup(it.path) : NULL;
    image_hold_release(&it);
}

static void wanted_ended(void *arg)
{
    (void)arg;
    wanted.ended++;
    fiber_wake(wanted.observer);
}

static void start_all(const char *name, size_t from, size_t to)
{
    memset(&wanted, 0, sizeof(wanted));
    wanted.name = name;
    wanted.observer = fiber_current();
    for (size_t i = from; i < to; i++)
        wanted.fibers[i] = fiber_start(loop, want, wanted_ended, (void *)(intptr_t)i);
}

static void await_all(int count)
{
    while (wanted.ended < count)
        assert_int_equal(await_wake(-1), 0);
}

/* The spawner is one. */
static int count_children(void)
{
    AUTO_FCLOSE FILE *file = fopen("/proc/thread-self/children", "re");
    int pid, count = 0;
    while (file && fscanf(file, "%d", &pid) == 1)
        count++;
    return count;
}

FIBER_TEST(all_who_want_an_image_wait_for_one_process)
{
    int most = 0;
    start_all(copy_of_plain("a.sif"), 0, 7);
    while (wanted.ended < 7) {
        int now = count_children();
        most = now > most ? now : most;
        assert_int_equal(await_sleep(1), 0);
    }
    assert_true(most <= 2);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(wanted.codes[i], 0);
        assert_string_equal(wanted.paths[i], wanted.paths[0]);
    }
    for (size_t i = 0; i < 7; i++)
        free(wanted.paths[i]);
}

static bool has_prepared(void)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/images", cache);
    DIR *stream = opendir(path);
    const struct dirent *entry;
    bool found = false;
    while (stream && (entry = readdir(stream)))
        found |= strlen(entry->d_name) == IMAGE_KEY_SIZE - 1;
    if (stream)
        closedir(stream);
    return found;
}

FIBER_TEST(who_is_late_leaves_it_running_for_the_next)
{
    start_all(copy_of_plain("a.sif"), 7, 8);
    await_all(1);
    assert_int_equal(wanted.codes[7], -ETIMEDOUT);
    while (!has_prepared()) /* nobody asks for it now */
        assert_int_equal(await_sleep(5), 0);
    struct image_hold it = hold(wanted.name);
    expect_root(&it);
    image_hold_release(&it);
}

FIBER_TEST(who_is_cancelled_ends_at_once_and_the_others_get_it)
{
    start_all(copy_of_plain("a.sif"), 0, 3);
    assert_int_equal(await_sleep(1), 0); /* all three have begun */
    fiber_cancel(wanted.fibers[1]);
    await_all(3);
    assert_int_equal(wanted.codes[1], -ECANCELED);
    assert_int_equal(wanted.codes[0], 0);
    assert_int_equal(wanted.codes[2], 0);
    free(wanted.paths[0]);
    free(wanted.paths[2]);
}

/* ---- trouble --------------------------------------------------------------------------------- */

static void expect_failure(const char *name, int code, const char *words)
{
    struct image_hold it = {0};
    struct fail fail = {0};
    int found = images_hold(images, name, &it, &fail);
    if (found != code || !strstr(fail.text, words))
        fail_msg("%s: %d %s, not %d %s", name, found, fail.text, code, words);
    assert_null(it.path);
}

FIBER_TEST(a_bad_image_is_the_images_fault_with_its_name_and_the_reason)
{
    size_t size;
    char path[512];
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    expect_failure(in_directory("none.sif"), -EINVAL, "there is no image /tmp/sluice-test");
    expect_failure(write_image("cut.sif", data, 20000), -EINVAL,
                   "cut.sif: the SIF's root is 4096 bytes at 32768, and the file has 20000");
    fixture_path(path, "arm64.sif");
    expect_failure(path, -EINVAL, "for arm64");
    assert_int_equal(symlink("loop", in_directory("loop")), 0);
    expect_failure(in_directory("loop"), -ENOMEDIUM, "cannot read the image");
}

FIBER_TEST(an_image_that_was_replaced_is_prepared_anew)
{
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("many.sif", &size);
    const char *name = copy_of_plain("a.sif");
    struct image_hold first = hold(name);
    write_image("b.sif", data, size);
    assert_int_equal(rename(in_directory("b.sif"), name), 0);
    int64_t until_ms = clock_ms() + IMAGES_FRESH_MS + 1;
    while (clock_ms() < until_ms)
        assert_int_equal(await_sleep(until_ms - clock_ms()), 0);
    struct image_hold second = hold(name);
    assert_string_not_equal(first.path, second.path);
    expect_root(&second);
    image_hold_release(&first);
    image_hold_release(&second);
}

FIBER_TEST(a_cache_that_cannot_be_written_is_the_nodes_fault)
{
    if (geteuid() == 0)
        return; /* may write everywhere */
    assert_int_equal(chmod(cache, 0500), 0);
    expect_failure(copy_of_plain("a.sif"), -EIO, "cannot make");
    assert_int_equal(chmod(cache, 0700), 0);
}

static void look_and_expect(const struct image_hold *it, int code, const char *words)
{
    struct fail fail = {0};
    assert_int_equal(image_hold_look(it, &fail), code);
    if (!strstr(fail.text, words))
        fail_msg("not \"%s\": %s", words, fail.text);
}

/* Who still stands on it keeps it, and the next has another. */
FIBER_TEST(a_prepared_image_that_was_changed_is_taken_out_of_the_cache_and_prepared_anew)
{
    const char *name = copy_of_plain("a.sif");
    struct image_hold old = hold(name), beside = hold(name);
    char path[1024];
    look_and_expect(&old, 0, "");
    file_clock_tick(directory);
    snprintf(path, sizeof(path), "%s/etc/motd", old.path);
    assert_int_equal(unlink(path), 0);
    look_and_expect(&old, -ESTALE, "etc has other entries");
    look_and_expect(&beside, -ENOMEDIUM, "is not there any more");
    struct image_hold again = hold(name);
    expect_root(&again);
    assert_string_equal(again.path, old.path);
    look_and_expect(&again, 0, "");
    image_hold_release(&old), image_hold_release(&beside), image_hold_release(&again);
}

/* It gets an index of what is there; what is left of one does not count. */
FIBER_TEST(an_image_that_an_earlier_release_prepared_is_used_and_what_is_left_of_one_is_not)
{
    const char *name = copy_of_plain("a.sif");
    char path[1024];
    for (int i = 0; i < 2; i++) {
        struct image_hold made = hold(name);
        const struct timespec of = stat_of(made.path).st_ctim;
        file_clock_tick(directory);
        *strrchr(made.path, '/') = '\0';
        snprintf(path, sizeof(path), "%s/%s", made.path, i == 0 ? "index" : "about.json");
        assert_int_equal(unlink(path), 0);
        image_hold_release(&made);
        images_destroy(&images); /* nothing is remembered */
        images = images_create(loop, cache, 0, &offered);
        struct image_hold again = hold(name);
        expect_root(&again);
        look_and_expect(&again, 0, "");
        const struct timespec now = stat_of(again.path).st_ctim;
        assert_true((now.tv_sec == of.tv_sec && now.tv_nsec == of.tv_nsec) == (i == 0));
        image_hold_release(&again);
    }
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_worker, tear_down_worker)
    const struct CMUnitTest tests[] = {
        TEST(a_sif_becomes_a_directory_that_stays_while_it_is_held),
        TEST(directories_and_the_host_are_what_they_are),
        TEST(only_images_that_the_operator_lists_may_be_named),
        TEST(neither_the_hosts_own_nor_the_workers_may_be_named_whatever_is_listed),
        TEST(what_is_prepared_may_be_named_though_nothing_is_listed),
        TEST(a_warm_image_costs_no_process_and_no_look_at_the_image),
        TEST(all_who_want_an_image_wait_for_one_process),
        TEST(who_is_late_leaves_it_running_for_the_next),
        TEST(who_is_cancelled_ends_at_once_and_the_others_get_it),
        TEST(a_bad_image_is_the_images_fault_with_its_name_and_the_reason),
        TEST(an_image_that_was_replaced_is_prepared_anew),
        TEST(a_prepared_image_that_was_changed_is_taken_out_of_the_cache_and_prepared_anew),
        TEST(an_image_that_an_earlier_release_prepared_is_used_and_what_is_left_of_one_is_not),
        TEST(a_cache_that_cannot_be_written_is_the_nodes_fault),
    };
    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
