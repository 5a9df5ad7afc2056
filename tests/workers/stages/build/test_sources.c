/* A task's files that lie on the workers' file system: directories, tars and large files, and what is none. */
#include "tests/workers/stages/kinds_world.h"

#include <archive.h>
#include <archive_entry.h>
#include <pthread.h>

#include "workers/sources/source.h"

static struct task_dirs task_dirs;
static char tasks[128];

static int set_up_sources(void **state)
{
    struct fail fail = {0};
    if (set_up_kinds(state) < 0)
        return -1;
    make_dir(tasks, sizeof(tasks), "tasks");
    task_dirs = (struct task_dirs){.own = &offered};
    context.task_dirs = &task_dirs;
    return task_dirs_add(&task_dirs, tasks, &fail);
}

static int tear_down_sources(void **state)
{
    task_dirs_finish(&task_dirs);
    return tear_down_kinds(state);
}

/* In the directory of tasks. */
static void host(const char *format, ...)
{
    char command[1024], whole[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    snprintf(whole, sizeof(whole), "cd %s && %s", tasks, command);
    assert_int_equal(system(whole), 0);
}

/* A task whose source is `name` of the directory of tasks, put to `path`; `rest` follows. */
static const char *task_of(const char *name, const char *path, const char *rest)
{
    static char json[2048];
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"true\",\"files\":[{\"path\":\"%s\",\"source\":\"%s/%s\"}]%s}", path, tasks,
             name, rest);
    return json;
}

#define CHECK(command) ",\"setup\":[\"" command "\"]"

static void expect_good(const char *name, const char *path, const char *rest)
{
    struct job job = run_stage(STAGE_INIT, task_of(name, path, rest), NULL, NULL, NULL);
    expect(&job, OUTCOME_OK, "");
    end_job(&job);
}

static void expect_refused(const char *name, const char *words)
{
    expect_init(task_of(name, "x", ""), OUTCOME_TASK, words);
}

/* ---- what there may be ---------------------------------------------------------------------------- */

FIBER_TEST(a_directory_goes_into_a_directory_with_modes_times_and_links)
{
    host("mkdir -p d/sub/deep && echo run > d/sub/run.sh && chmod 0751 d/sub/run.sh && echo ro > d/ro && chmod 0444 "
         "d/ro && "
         "ln -s sub/run.sh d/link && ln -s /etc/passwd d/out && chmod 0500 d/sub/deep && touch -d @1000 d/ro && "
         "ln d/ro d/again");
    expect_good(
        "d", "/workspace/into",
        CHECK("cd into && [[ $(<sub/run.sh) = run && $(stat -c %a sub/run.sh) = 751 && $(stat -c %a ro) = 444 && "
              "$(stat -c %Y ro) = 1000 && $(readlink link) = sub/run.sh && $(readlink out) = /etc/passwd && "
              "$(stat -c %a sub/deep) = 500 && $(stat -c %u ro) = $(id -u) && $(<again) = ro ]]"));
}

FIBER_TEST(a_directory_joins_what_is_there_and_later_files_come_over_it)
{
    char json[1024];
    host("mkdir -p d/sub && echo source > d/sub/a && echo source > d/b");
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"true\",\"files\":[{\"path\":\"sub/mine\",\"text\":\"mine\"},"
             "{\"path\":\".\",\"source\":\"%s/d\"},{\"path\":\"b\",\"text\":\"later\"}],"
             "\"setup\":[\"[[ $(<sub/mine) = mine && $(<sub/a) = source && $(<b) = later ]]\"]}",
             tasks);
    struct job job = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    expect(&job, OUTCOME_OK, "3 files");
    end_job(&job);
}

FIBER_TEST(tars_are_unpacked_whatever_packs_them)
{
    static const char *const names[] = {"t.tar", "t.tar.gz", "t.tgz", "t.tar.xz"};
    host("mkdir -p d/sub && echo hello > d/sub/a && chmod 0700 d/sub/a && ln d/sub/a d/same && ln -s sub/a d/link");
    host("for t in t.tar t.tar.gz t.tgz t.tar.xz; do tar -caf $t -C d . || exit 1; done");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        expect_good(names[i], "into",
                    CHECK("cd into && [[ $(<link) = hello && $(<same) = hello && $(stat -c %a sub/a) = 700 ]]"));
}

FIBER_TEST(one_file_of_105_mb_is_put_where_it_is_to_be)
{
    host("head -c 105000000 /dev/zero > setup.bin && echo end >> setup.bin && chmod 0640 setup.bin");
    expect_good("setup.bin", "/workspace/a/b.bin",
                CHECK("[[ $(stat -c '%s %a' a/b.bin) = '105000004 640' && $(tail -c 4 a/b.bin) = end ]]"));
}

FIBER_TEST(an_evaluators_sources_lie_over_what_the_agent_left)
{
    char json[1024];
    host("mkdir -p tests/inner && echo 'echo 1 > /tmp/reward' > tests/test.sh && echo data > tests/inner/data && "
         "echo one > one");
    snprintf(
        json, sizeof(json),
        "{\"task\":\"t\",\"prompt\":\"mkdir tests && ln -s /dev/null tests/test.sh; ln -s /nowhere tests/inner; "
        "ln -s /nowhere one\",\"eval\":{\"kind\":\"command\",\"files\":[{\"path\":\"tests\",\"source\":\"%s/tests\"},"
        "{\"path\":\"one\",\"source\":\"%s/one\"}],\"command\":\"[[ $(<one) = one && $(<tests/inner/data) = data ]] "
        "&& bash tests/test.sh\",\"reward_file\":\"/tmp/reward\"}}",
        tasks, tasks);
    expect_reward(json, 1, "");
}

FIBER_TEST(the_directory_may_be_named_as_its_operator_did_and_links_may_stay_within)
{
    struct fail fail = {0};
    char json[1024], link[192];
    snprintf(link, sizeof(link), "%s/shared", directory);
    assert_int_equal(symlink(tasks, link), 0);
    assert_int_equal(task_dirs_add(&task_dirs, link, &fail), 0);
    host("mkdir real && echo x > real/x && ln -s real here");
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"true\",\"files\":[{\"path\":\"x\",\"source\":\"%s//./here/x\"}],"
             "\"setup\":[\"[[ $(<x) = x ]]\"]}",
             link);
    struct job job = run_stage(STAGE_INIT, json, NULL, NULL, NULL);
    expect(&job, OUTCOME_OK, "");
    end_job(&job);
}

/* ---- what there may not be -------------------------------------------------------------------------- */

FIBER_TEST(what_is_not_offered_or_not_there_is_refused_with_the_option)
{
    struct fail fail = {0};
    expect_init(
        "{\"task\":\"t\",\"prompt\":\"p\",\"files\":[{\"path\":\"x\",\"source\":\"/etc\"}]}", OUTCOME_TASK,
        "the source /etc is not one that this worker offers: its operator lists directories of tasks with --task-dir");
    expect_refused("nothing/here", "nothing/here is not there");
    host("ln -s /etc out && ln -s /etc/passwd file");
    expect_refused("out", "a symbolic link on the way leads out of");
    expect_refused("out/passwd", "a symbolic link on the way leads out of");
    expect_refused("file", "a symbolic link on the way leads out of");
    context.task_dirs = NULL;
    expect_refused("out", "is not one that this worker offers");
    static const char *const never[] = {"/", "/etc", "/proc/self", "/nowhere"};
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        assert_int_equal(task_dirs_add(&task_dirs, never[i], &fail), -EINVAL);
}

FIBER_TEST(what_is_the_workers_own_is_no_source_though_it_lies_there)
{
    struct fail fail = {0};
    char own[192];
    host("mkdir -p all/keys && echo secret > all/keys/key");
    snprintf(own, sizeof(own), "%s/all/keys", tasks);
    assert_int_equal(image_list_keep(&offered, own, &fail), 0);
    expect_refused("all/keys/key", "the worker's own");
    expect_refused("all", "the worker's own");
}

FIBER_TEST(fifos_and_sockets_are_named_and_never_waited_for)
{
    host("mkdir d && mkfifo d/fifo pipe");
    expect_refused("d", "it holds fifo, which is neither a file, a directory nor a symbolic link");
    expect_refused("pipe", "it is neither a file nor a directory");
}

FIBER_TEST(more_entries_than_65536_are_too_many)
{
    char path[192];
    host("mkdir d");
    snprintf(path, sizeof(path), "%s/d", tasks);
    AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i <= SOURCE_ENTRIES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(mknodat(dir, name, S_IFREG | 0644, 0), 0);
    }
    expect_refused("d", "it holds more than 65536 entries");
}

FIBER_TEST(more_bytes_than_the_disk_limit_are_too_many_also_packed_ones)
{
    host("head -c 3000000 /dev/zero > big && tar -czf big.tar.gz big");
    expect_init(task_of("big", "x", ",\"limits\":{\"disk_mib\":2}"), OUTCOME_TASK, "by limits.disk_mib, 2 MiB");
    expect_init(task_of("big.tar.gz", "x", ",\"limits\":{\"disk_mib\":2}"), OUTCOME_TASK, "by limits.disk_mib, 2 MiB");
}

FIBER_TEST(a_tree_of_too_many_levels_is_refused)
{
    host("mkdir d && cd d && for i in $(seq 130); do mkdir l && cd l || exit 1; done");
    expect_refused("d", "more than 128 levels deep");
}

static atomic_bool is_enough;

static void *write_on(void *arg)
{
    int file = *(int *)arg;
    while (!atomic_load(&is_enough))
        assert_int_equal(write(file, "x", 1), 1);
    return NULL;
}

FIBER_TEST(a_file_that_changes_while_it_is_read_is_refused)
{
    char path[192];
    pthread_t thread;
    host("head -c 64000000 /dev/zero > log");
    snprintf(path, sizeof(path), "%s/log", tasks);
    AUTO_CLOSE int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    atomic_store(&is_enough, false);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &file), 0);
    expect_refused("log", "changed while it was read");
    atomic_store(&is_enough, true);
    pthread_join(thread, NULL);
}

/* ---- tars that are no tars ---------------------------------------------------------------------------- */

/* With one entry, of this type; `link` is a hard link's target, or NULL. */
static void make_tar(const char *name, const char *entry_name, mode_t type, const char *link)
{
    char path[192];
    snprintf(path, sizeof(path), "%s/%s", tasks, name);
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format_pax(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    archive_entry_set_pathname(entry, entry_name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, 0);
    if (link)
        archive_entry_set_hardlink(entry, link);
    assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
    archive_entry_free(entry);
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
}

FIBER_TEST(tars_that_lead_out_or_hold_what_is_no_file_are_refused)
{
    make_tar("up.tar", "a/../../b", S_IFREG, NULL);
    expect_refused("up.tar", "its name is absolute, has \"..\", or is too long");
    make_tar("absolute.tar", "/etc/x", S_IFREG, NULL);
    expect_refused("absolute.tar", "it holds /etc/x: its name is absolute");
    make_tar("link.tar", "x", S_IFREG, "../../etc/passwd");
    expect_refused("link.tar", "a hard link that leads out of it");
    make_tar("missing.tar", "x", S_IFREG, "y");
    expect_refused("missing.tar", "a hard link to what is not in it");
    make_tar("fifo.tar", "x", S_IFIFO, NULL);
    expect_refused("fifo.tar", "it is neither a file, a directory nor a symbolic link");
    make_tar("device.tar", "x", S_IFCHR, NULL);
    expect_refused("device.tar", "it is neither a file, a directory nor a symbolic link");
    host("echo nothing > text.tar && head -c 100 /dev/urandom > noise.tar.gz && echo hello > a && "
         "tar -czf whole.tar.gz a && head -c 60 whole.tar.gz > cut.tar.gz");
    expect_refused("text.tar", "it is not a tar");
    expect_refused("noise.tar.gz", "it is not a tar");
    expect_refused("cut.tar.gz", "it is not a tar");
}

/* A link in a tar, and then a file behind it: it lands inside, in what the tar's own root is. */
FIBER_TEST(a_tar_cannot_write_through_its_own_links)
{
    host("mkdir d && ln -s %s/victim d/l && tar -cf l.tar -C d l && rm d/l && mkdir d/l && echo x > d/l/f && "
         "tar -rf l.tar -C d l/f && mkdir %s/victim",
         directory, directory);
    struct job job = run_stage(STAGE_INIT, task_of("l.tar", "x", ""), NULL, NULL, NULL);
    char path[192];
    snprintf(path, sizeof(path), "%s/victim/f", directory);
    assert_int_equal(access(path, F_OK), -1);
    end_job(&job);
}

FIBER_TEST(what_cannot_be_written_inside_is_the_tasks_fault)
{
    host("mkdir d && echo x > d/x");
    expect_init(task_of("d", "/usr/lib", ""), OUTCOME_TASK, "cannot write the file /usr/lib");
    host("echo y > file");
    expect_init(task_of("file", "/usr/bin/env/x", ""), OUTCOME_TASK, "cannot write the file /usr/bin/env/x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_sources, tear_down_sources)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_directory_goes_into_a_directory_with_modes_times_and_links),
        TEST(a_directory_joins_what_is_there_and_later_files_come_over_it),
        TEST(tars_are_unpacked_whatever_packs_them),
        TEST(one_file_of_105_mb_is_put_where_it_is_to_be),
        TEST(an_evaluators_sources_lie_over_what_the_agent_left),
        TEST(the_directory_may_be_named_as_its_operator_did_and_links_may_stay_within),
        TEST(what_is_not_offered_or_not_there_is_refused_with_the_option),
        TEST(what_is_the_workers_own_is_no_source_though_it_lies_there),
        TEST(fifos_and_sockets_are_named_and_never_waited_for),
        TEST(more_entries_than_65536_are_too_many),
        TEST(more_bytes_than_the_disk_limit_are_too_many_also_packed_ones),
        TEST(a_tree_of_too_many_levels_is_refused),
        TEST(a_file_that_changes_while_it_is_read_is_refused),
        TEST(tars_that_lead_out_or_hold_what_is_no_file_are_refused),
        TEST(a_tar_cannot_write_through_its_own_links),
        TEST(what_cannot_be_written_inside_is_the_tasks_fault),
    };
    return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
