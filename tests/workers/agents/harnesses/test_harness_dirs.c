/* Which directories of a node are harnesses': those that its operator names, and those that are installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "workers/agents/harnesses/harness_dirs.h"
#include "workers/images/list.h"

static char directory[64];
static struct image_list own;
static struct harness_dirs dirs;
static struct fail fail;

static void shell(const char *command)
{
    char line[1024];
    snprintf(line, sizeof(line), "cd %s && { %s; }", directory, command);
    assert_int_equal(system(line), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/sluice-test-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    own = (struct image_list){0};
    dirs = (struct harness_dirs){0};
    shell("mkdir -p codex/bin empty data/codex/bin && touch codex/bin/codex data/codex/bin/codex file");
    char path[96];
    snprintf(path, sizeof(path), "%s/data", directory);
    unsetenv("SLUICE_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", directory, 1);
    return image_list_keep(&own, path, &fail);
}

static int tear_down(void **state)
{
    char line[128];
    (void)state;
    harness_dirs_finish(&dirs);
    image_list_finish(&own);
    snprintf(line, sizeof(line), "rm -rf %s", directory);
    return system(line);
}

static int add(const char *name, const char *below)
{
    char text[256];
    snprintf(text, sizeof(text), "%s=%s/%s", name, directory, below);
    return harness_dirs_add(&dirs, &own, text, &fail);
}

/* The words behind "--harness NAME=DIRECTORY/BELOW: ". */
static void expect_refused(const char *name, const char *below, const char *words)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "--harness %s=%s/%s: %s", name, directory, below, words);
    assert_int_equal(add(name, below), -EINVAL);
    assert_string_equal(fail.text, whole);
    assert_int_equal(dirs.count, 0);
}

static void expect_path(const char *name, const char *below)
{
    char path[256];
    const struct harness_dir *dir = harness_dirs_get(&dirs, name);
    snprintf(path, sizeof(path), "%s/%s", directory, below);
    assert_non_null(dir);
    assert_string_equal(dir->path, path);
}

static void a_directory_with_its_program_is_taken_by_its_real_path(void **state)
{
    (void)state;
    shell("ln -s codex link");
    assert_int_equal(add("codex", "link"), 0);
    expect_path("codex", "codex");
    assert_null(harness_dirs_get(&dirs, "claude-code"));
    assert_null(harness_dirs_get(NULL, "codex"));
}

static void a_program_that_is_a_link_to_what_only_those_inside_find_is_one(void **state)
{
    (void)state;
    shell("ln -sf /opt/harness/codex/nowhere codex/bin/codex");
    assert_int_equal(add("codex", "codex"), 0);
}

static void what_is_no_harness_is_refused_in_words(void **state)
{
    (void)state;
    expect_refused("codex", "nowhere", "No such file or directory");
    expect_refused("codex", "file", "it is not a directory");
    expect_refused("codex", "empty", "it has no bin/codex (sluice harness install codex makes such a directory)");
    expect_refused("codex", "data/codex", "it is, holds or lies in what is the host's or the worker's own");
    expect_refused("codex", ".", "it is, holds or lies in what is the host's or the worker's own");
    expect_refused("kodex", "codex",
                   "there is no harness of that name; there are: mini-swe-agent, claude-code, codex, opencode, "
                   "qwen-code, openhands, terminus-2, pi");
    expect_refused("command", "codex",
                   "there is no harness of that name; there are: mini-swe-agent, claude-code, codex, opencode, "
                   "qwen-code, openhands, terminus-2, pi");
}

static void what_is_not_name_and_directory_is_refused(void **state)
{
    static const char *const wrong[] = {"", "codex", "codex=", "=/tmp", "="};
    char words[64];
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        snprintf(words, sizeof(words), "--harness %s: not NAME=DIR", wrong[i]);
        assert_int_equal(harness_dirs_add(&dirs, &own, wrong[i], &fail), -EINVAL);
        assert_string_equal(fail.text, words);
    }
}

static void one_is_given_once(void **state)
{
    (void)state;
    assert_int_equal(add("codex", "codex"), 0);
    assert_int_equal(add("codex", "codex"), -EINVAL);
    assert_non_null(strstr(fail.text, "codex: its directory was given before"));
    assert_int_equal(dirs.count, 1);
}

static void what_is_installed_is_found_where_the_environment_says(void **state)
{
    static const struct {
        const char *variable, *value, *place;
    } rows[] = {
        {"HOME", "", ".cache/sluice"}, {"XDG_CACHE_HOME", "/xdg", "xdg/sluice"}, {"SLUICE_CACHE", "/own", "own"}};
    char command[512], value[128], found[128];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(value, sizeof(value), "%s%s", directory, rows[i].value);
        setenv(rows[i].variable, value, 1);
        snprintf(found, sizeof(found), "%s/harness/codex/1.0", rows[i].place);
        snprintf(command, sizeof(command), "mkdir -p %s && cp -r codex/bin %s && ln -s 1.0 %s/../current", found, found,
                 found);
        shell(command);
        harness_dirs_find(&dirs, &own);
        assert_int_equal(dirs.count, 1);
        expect_path("codex", found);
        harness_dirs_finish(&dirs);
    }
}

static void one_that_is_given_comes_before_one_that_is_installed(void **state)
{
    (void)state;
    shell("mkdir -p .cache/sluice/harness/codex/1.0 && cp -r codex/bin .cache/sluice/harness/codex/1.0 &&"
          " ln -s 1.0 .cache/sluice/harness/codex/current");
    assert_int_equal(add("codex", "codex"), 0);
    harness_dirs_find(&dirs, &own);
    assert_int_equal(dirs.count, 1);
    expect_path("codex", "codex");
}

/* As `sluice harness remove` has it while it takes one away; -1: it is held. */
static int take_alone(const char *below)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", directory, below);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    assert_int_equal(errno, EWOULDBLOCK);
    close(fd);
    return -1;
}

static void one_is_held_while_the_worker_lives_and_one_that_is_being_removed_is_not_taken(void **state)
{
    (void)state;
    assert_int_equal(add("codex", "codex"), 0);
    assert_int_equal(take_alone("codex"), -1);
    harness_dirs_finish(&dirs);
    const int fd = take_alone("codex");
    assert_true(fd >= 0);
    expect_refused("codex", "codex", "it is being removed");
    close(fd);
    assert_int_equal(add("codex", "codex"), 0);
}

static void without_a_home_nothing_is_installed(void **state)
{
    (void)state;
    unsetenv("HOME");
    harness_dirs_find(&dirs, &own);
    assert_int_equal(dirs.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_directory_with_its_program_is_taken_by_its_real_path),
        TEST(a_program_that_is_a_link_to_what_only_those_inside_find_is_one),
        TEST(what_is_no_harness_is_refused_in_words),
        TEST(what_is_not_name_and_directory_is_refused),
        TEST(one_is_given_once),
        TEST(what_is_installed_is_found_where_the_environment_says),
        TEST(one_that_is_given_comes_before_one_that_is_installed),
        TEST(one_is_held_while_the_worker_lives_and_one_that_is_being_removed_is_not_taken),
        TEST(without_a_home_nothing_is_installed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
