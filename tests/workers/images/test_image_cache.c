/* The program sluice-image and the cache it fills: once, whole or not at all, within its size. */
#include "tests/workers/images/oci_fixture.h"

#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <utime.h>

#include "common/base/clock.h"
#include "workers/files/locked_dir.h"
#include "workers/images/verbs.h"

enum { WAIT_MS = 60000 };

static char program[512];
static char plain[512];

static int set_up_cache(void **state)
{
    const char *binaries = getenv("SLUICE_BINARY_DIR");
    if (!binaries || set_up_images(state) < 0)
        return -1;
    snprintf(program, sizeof(program), "%s/workers/sluice-image", binaries);
    fixture_path(plain, "plain.sif");
    return 0;
}

/* ---- running it ------------------------------------------------------------------------------- */

struct run {
    pid_t pid;
    int out;
};

static struct run start(const char *const *arguments)
{
    const char *argv[16] = {program};
    int ends[2];
    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct run run = {.pid = fork(), .out = ends[0]};
    if (run.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_WRONLY);
        if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 || chdir(directory) < 0)
            _exit(126);
        execv(program, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    return run;
}

/* Its exit status, or 256 + signal; *ret_text for free(). */
static int finish(const struct run *run, char **ret_text)
{
    AUTO_BUFFER text = {0};
    char bytes[4096];
    ssize_t got;
    int status;
    while ((got = read(run->out, bytes, sizeof(bytes))) > 0)
        buffer_append(&text, bytes, (size_t)got);
    close(run->out);
    assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
    *ret_text = buffer_take_str(&text);
    return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define RUN(...) start((const char *const[]){__VA_ARGS__, NULL})

static json_t *finish_json(struct run run, int expected)
{
    AUTO_FREE char *text = NULL;
    int status = finish(&run, &text);
    json_t *json = json_loads(text, 0, NULL);
    if (status != expected || !json)
        fail_msg("status %d, not %d: %s", status, expected, text);
    return json;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

static void expect_error(struct run run, int status, const char *refusal, const char *words)
{
    json_t *json = finish_json(run, status), *error = json_object_get(json, "error");
    assert_string_equal(text_of(error, "refusal"), refusal);
    if (!strstr(text_of(error, "detail"), words))
        fail_msg("%s", text_of(error, "detail"));
    json_decref(json);
}

static size_t count_in_cache(const char *part)
{
    char command[512];
    snprintf(command, sizeof(command), "ls -A %s/cache/images | grep -c -- '%s'", directory, part);
    FILE *pipe = popen(command, "r");
    size_t count = 0;
    assert_int_equal(fscanf(pipe, "%zu", &count), 1);
    pclose(pipe);
    return count;
}

/* ---- preparing ---------------------------------------------------------------------------------- */

static void an_image_is_prepared_once_and_found_again(void **state)
{
    (void)state;
    json_t *first = finish_json(RUN("prepare", plain, "--cache", "cache", "--json"), 0);
    json_t *again = finish_json(RUN("prepare", plain, "--cache", "cache", "--json"), 0);
    assert_true(json_is_true(json_object_get(first, "new")));
    assert_true(json_is_false(json_object_get(again, "new")));
    assert_string_equal(text_of(first, "path"), text_of(again, "path"));
    assert_string_equal(text_of(first, "watch"), plain);
    assert_int_equal(json_integer_value(json_object_get(first, "bytes")), 39);
    assert_int_equal(json_integer_value(json_object_get(first, "devices")), 1);
    char path[1024];
    snprintf(path, sizeof(path), "%s/etc/motd", text_of(first, "path"));
    expect_file(path, "hello\n");
    json_t *list = finish_json(RUN("list", "--cache", "cache", "--json"), 0);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(text_of(json_array_get(list, 0), "image"), plain);
    json_t *seen = finish_json(RUN("inspect", plain, "--cache", "cache", "--json"), 0);
    assert_non_null(strstr(text_of(first, "path"), text_of(seen, "key")));
    assert_string_not_equal(text_of(seen, "prepared"), "");
    json_decref(seen);
    json_decref(list);
    json_decref(again);
    json_decref(first);
}

static void six_at_once_prepare_it_once(void **state)
{
    (void)state;
    struct run runs[6];
    size_t made = 0;
    for (size_t i = 0; i < 6; i++)
        runs[i] = RUN("prepare", plain, "--cache", "cache", "--json");
    for (size_t i = 0; i < 6; i++) {
        json_t *json = finish_json(runs[i], 0);
        made += json_is_true(json_object_get(json, "new"));
        json_decref(json);
    }
    assert_int_equal(made, 1);
    assert_int_equal(count_in_cache("."), 1);
}

static void an_image_that_changed_is_another(void **state)
{
    (void)state;
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    write_image("a.sif", data, size);
    json_t *first = finish_json(RUN("prepare", "a.sif", "--cache", "cache", "--json"), 0);
    assert_int_equal(utime(in_directory("a.sif"), &(struct utimbuf){1, 1}), 0);
    json_t *second = finish_json(RUN("prepare", "a.sif", "--cache", "cache", "--json"), 0);
    assert_string_not_equal(text_of(first, "path"), text_of(second, "path"));
    json_decref(first);
    json_decref(second);
}

enum { MANY = 4000 };

/* A layout that takes a while to unpack: one layer of so many files. */
static void make_many(void)
{
    static struct tar_item items[MANY + 1];
    static char names[MANY][16];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "d%zu/f%zu", i % 10, i);
        items[i] = (struct tar_item){names[i], S_IFREG, "content"};
    }
    make_image("many", (const struct tar_item *const[]){items}, 1);
}

/* Waits until it makes a directory in the cache. */
static void await_directory(int notes)
{
    char bytes[4096] __attribute__((aligned(8)));
    for (;;) {
        assert_int_equal(poll(&(struct pollfd){notes, POLLIN, 0}, 1, WAIT_MS), 1);
        ssize_t got = read(notes, bytes, sizeof(bytes));
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;
            if (event->mask & IN_ISDIR)
                return;
            at += sizeof(*event) + event->len;
        }
    }
}

static void one_killed_while_it_prepares_leaves_nothing_that_counts(void **state)
{
    (void)state;
    make_many();
    assert_int_equal(mkdir(in_directory("cache"), 0755), 0);
    assert_int_equal(mkdir(in_directory("cache/images"), 0755), 0);
    AUTO_CLOSE int notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(inotify_add_watch(notes, in_directory("cache/images"), IN_CREATE) >= 0);
    struct run run = RUN("prepare", "many", "--cache", "cache", "--json");
    await_directory(notes);
    kill(run.pid, SIGKILL);
    AUTO_FREE char *text = NULL;
    assert_int_equal(finish(&run, &text), 256 + SIGKILL);
    assert_int_equal(count_in_cache("^[0-9a-f]\\{64\\}$"), 0);
    assert_int_equal(count_in_cache("\\.tmp\\."), 1);
    json_t *json = finish_json(RUN("prepare", "many", "--cache", "cache", "--json"), 0);
    assert_true(json_is_true(json_object_get(json, "new")));
    assert_int_equal(json_integer_value(json_object_get(json, "entries")), MANY);
    json_decref(json);
}

static void remains_of_the_killed_are_swept_and_those_at_work_are_not(void **state)
{
    (void)state;
    const struct utimbuf old = {1000, 1000};
    struct fail fail = {0};
    assert_int_equal(mkdir(in_directory("cache"), 0755), 0);
    assert_int_equal(mkdir(in_directory("cache/images"), 0755), 0);
    AUTO_FREE char *dead = locked_dir_make(in_directory("cache/images"), "dead", &fail);
    AUTO_FREE char *alive = locked_dir_make(in_directory("cache/images"), "alive", &fail);
    AUTO_FREE char *fresh = locked_dir_make(in_directory("cache/images"), "fresh", &fail);
    assert_true(dead && alive && fresh);
    AUTO_CLOSE int held = locked_dir_hold(alive);
    assert_true(held >= 0 && utime(dead, &old) == 0 && utime(alive, &old) == 0);
    json_decref(finish_json(RUN("prune", "--cache", "cache", "--json"), 0));
    assert_false(is_there(dead));
    assert_true(is_there(alive));
    assert_true(is_there(fresh)); /* its maker may just be about to hold it */
    const char *const gone = in_directory("cache/images/k.tmp.gone-1");
    assert_int_equal(mkdir(gone, 0755), 0); /* its remover was killed */
    json_decref(finish_json(RUN("prune", "--cache", "cache", "--json"), 0));
    assert_false(is_there(gone));
}

static void a_signal_stops_it_in_order(void **state)
{
    (void)state;
    AUTO_FREE char *text = NULL;
    assert_int_equal(mkdir(in_directory("cache"), 0755), 0);
    assert_int_equal(mkdir(in_directory("cache/images"), 0755), 0);
    json_t *seen = finish_json(RUN("inspect", plain, "--cache", "cache", "--json"), 0);
    char name[256];
    snprintf(name, sizeof(name), "cache/images/%s.lock", text_of(seen, "key"));
    AUTO_CLOSE int lock = open(in_directory(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX), 0); /* as one who prepares it */
    struct run run = RUN("prepare", plain, "--cache", "cache", "--json");
    AUTO_FREE char *wait = NULL;
    assert_true(asprintf(&wait, "/proc/%d/wchan", (int)run.pid) > 0);
    for (int64_t until_ms = clock_ms() + WAIT_MS; clock_ms() < until_ms;) {
        char where[64] = "";
        AUTO_CLOSE int file = open(wait, O_RDONLY | O_CLOEXEC);
        if (file >= 0 && read(file, where, sizeof(where) - 1) > 0 && strstr(where, "lock"))
            break; /* it waits for us */
        if (file >= 0 && strcmp(where, "0") == 0)
            break; /* this kernel does not say */
        sched_yield();
    }
    kill(run.pid, SIGTERM);
    int status = finish(&run, &text);
    if (status != IMAGE_EXIT_STOPPED && status != 256 + SIGTERM) /* before it had begun */
        fail_msg("status %d: %s", status, text);
    assert_int_equal(count_in_cache("tmp"), 0);
    json_decref(seen);
}

/* ---- pruning -------------------------------------------------------------------------------------- */

/* Prepares a copy of the fixture by another name; its key's directory. */
static char *prepare_copy(const char *name, time_t used_s)
{
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    write_image(name, data, size);
    json_t *json = finish_json(RUN("prepare", name, "--cache", "cache", "--json"), 0);
    char *path = strdup(text_of(json, "path"));
    json_decref(json);
    *strrchr(path, '/') = '\0';
    if (used_s)
        assert_int_equal(utime(path, &(struct utimbuf){used_s, used_s}), 0);
    return path;
}

static void the_least_recently_used_go_first_and_what_is_held_stays(void **state)
{
    (void)state;
    struct image_trouble trouble = {0};
    struct image_cache cache;
    uint64_t bytes;
    AUTO_FREE char *oldest = prepare_copy("a.sif", 1000);
    AUTO_FREE char *held = prepare_copy("b.sif", 2000);
    AUTO_FREE char *middle = prepare_copy("c.sif", 3000);
    AUTO_FREE char *latest = prepare_copy("d.sif", 0);
    AUTO_CLOSE int lock = open(held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_SH), 0);
    assert_int_equal(image_cache_open(in_directory("cache"), 0, &cache, &trouble), 0);
    assert_int_equal(image_cache_prune(&cache, INT64_MAX, 4 * 39, &bytes), 0);
    assert_int_equal(image_cache_prune(&cache, INT64_MAX, 3 * 39, &bytes), 1);
    assert_int_equal(bytes, 39);
    assert_false(is_there(oldest));
    assert_true(is_there(held) && is_there(middle));
    assert_int_equal(image_cache_prune(&cache, INT64_MAX, 2 * 39, &bytes), 1);
    assert_true(is_there(held) && !is_there(middle) && is_there(latest));
    assert_int_equal(image_cache_prune(&cache, 3600, UINT64_MAX, &bytes), 0); /* held, or just used */
    image_cache_close(&cache);
    AUTO_FREE char *text = NULL;
    struct run run = RUN("prune", "--all", "--cache", "cache");
    assert_int_equal(finish(&run, &text), 0);
    assert_string_equal(text, "removed 1 images, 39 bytes\n");
    assert_true(is_there(held) && !is_there(latest));
}

static void a_new_image_makes_room_within_the_size_or_is_refused(void **state)
{
    (void)state;
    struct image_trouble trouble = {0};
    struct image image;
    struct image_prepared prepared;
    const struct image_order order = {.limits = wide, .stop = &never};
    AUTO_FREE char *old = prepare_copy("a.sif", 1000);
    AUTO_FREE char *newer = prepare_copy("b.sif", 2000);
    struct image_cache cache;
    assert_int_equal(image_cache_open(in_directory("cache"), 100, &cache, &trouble), 0);
    assert_int_equal(image_open(plain, &image, &trouble), 0);
    assert_int_equal(image_cache_prepare(&cache, &image, &order, &prepared, &trouble), 0);
    assert_true(prepared.is_new && !is_there(old) && is_there(newer)); /* 3 * 39 is over 100 */
    image_prepared_finish(&prepared);
    cache.bytes_max = 38;
    uint64_t bytes;
    image_cache_prune(&cache, INT64_MIN, 0, &bytes);
    assert_int_equal(image_cache_prepare(&cache, &image, &order, &prepared, &trouble), -ENOSPC);
    assert_non_null(strstr(trouble.fail.text, "39 bytes, more than the cache may hold (38)"));
    assert_int_equal(trouble.refusal, IMAGE_REFUSAL_NONE); /* the node's, not the image's */
    image_close(&image);
    image_cache_close(&cache);
}

/* ---- the command line ----------------------------------------------------------------------------- */

static void exit_statuses_and_refusals_tell_the_image_from_the_node(void **state)
{
    (void)state;
    char path[512];
    fixture_path(path, "arm64.sif");
    expect_error(RUN("inspect", path, "--json"), IMAGE_EXIT_REFUSED, "architecture", "for arm64");
    expect_error(RUN("prepare", "/none.sif", "--json"), IMAGE_EXIT_REFUSED, "missing", "there is no image /none.sif");
    expect_error(RUN("prepare", "docker://a:b", "--json"), IMAGE_EXIT_REFUSED, "remote",
                 "`apptainer build a_b.sif docker://a:b`");
    expect_error(RUN("prepare", plain, "--json", "--cache", "/proc/none"), IMAGE_EXIT_FAILED, "", "/proc/none");
    const char *const wrong[][4] = {{"", NULL},
                                    {"fetch", NULL},
                                    {"inspect", NULL},
                                    {"list", "x", NULL},
                                    {"list", "--all", NULL},
                                    {"prune", "--idle", "x", NULL},
                                    {"prepare", "--to", NULL}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        AUTO_FREE char *text = NULL;
        struct run run = start(i ? wrong[i] : wrong[0] + 1);
        assert_int_equal(finish(&run, &text), IMAGE_EXIT_USAGE);
        assert_string_equal(text, "");
    }
    AUTO_FREE char *help = NULL;
    struct run run = RUN("--help");
    assert_int_equal(finish(&run, &help), 0);
    assert_non_null(strstr(help, "apptainer build debian.sif docker://debian:12"));
}

static void names_out_of_an_image_are_said_without_harm(void **state)
{
    (void)state;
    const struct tar_item items[] = {{"../\xff\x1b[2J", S_IFREG, "x"}, {0}};
    make_image("bad", (const struct tar_item *const[]){items}, 1);
    expect_error(RUN("prepare", "bad", "--cache", "cache", "--json"), IMAGE_EXIT_REFUSED, "oci-layer",
                 "a layer holds ../??[2J: its path leads out");
}

static void the_page_about_images_ends_with_what_the_program_says(void **state)
{
    (void)state;
    char path[512];
    AUTO_FREE char *said = NULL;
    AUTO_BUFFER page = {0};
    struct run run = RUN("--help-markdown");
    assert_int_equal(finish(&run, &said), 0);
    snprintf(path, sizeof(path), "%s/docs/images.md", getenv("SLUICE_SOURCE_DIR"));
    AUTO_FCLOSE FILE *file = fopen(path, "rb");
    char bytes[4096];
    assert_non_null(file);
    for (size_t got; (got = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        buffer_append(&page, bytes, got);
    size_t len = strlen(said);
    assert_true(len > 1000 && page.len > len);
    buffer_append(&page, "", 1);
    assert_string_equal((const char *)page.data + page.len - 1 - len, said);
}

static void a_directory_of_others_is_told_and_copied(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_directory("dir"), 0755), 0);
    write_image("dir/f", "f", 1);
    if (geteuid() == 0)
        assert_int_equal(chown(in_directory("dir/f"), 4711, 4711), 0);
    json_t *seen = finish_json(RUN("inspect", "dir", "--json"), 0);
    assert_int_equal(json_integer_value(json_object_get(seen, "foreign")), geteuid() == 0);
    json_t *copied = finish_json(RUN("prepare", "dir", "--to", "own", "--json"), 0);
    assert_string_equal(text_of(copied, "kind"), "directory");
    assert_int_equal(stat_of(in_directory("own/f")).st_uid, geteuid());
    expect_file(in_directory("own/f"), "f");
    expect_error(RUN("prepare", "dir", "--to", "own", "--json"), IMAGE_EXIT_FAILED, "", "exists");
    json_decref(copied);
    json_decref(seen);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_cache, tear_down_images)
    const struct CMUnitTest tests[] = {
        TEST(an_image_is_prepared_once_and_found_again),
        TEST(six_at_once_prepare_it_once),
        TEST(an_image_that_changed_is_another),
        TEST(one_killed_while_it_prepares_leaves_nothing_that_counts),
        TEST(remains_of_the_killed_are_swept_and_those_at_work_are_not),
        TEST(a_signal_stops_it_in_order),
        TEST(the_least_recently_used_go_first_and_what_is_held_stays),
        TEST(a_new_image_makes_room_within_the_size_or_is_refused),
        TEST(exit_statuses_and_refusals_tell_the_image_from_the_node),
        TEST(names_out_of_an_image_are_said_without_harm),
        TEST(the_page_about_images_ends_with_what_the_program_says),
        TEST(a_directory_of_others_is_told_and_copied),
    };
    return cmocka_run_group_tests_name("image_cache", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
