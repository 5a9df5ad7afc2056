/* The worker's own files below what the image "host" shows: no sandbox shows them, whoever runs the worker. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include "workers/programs/options.h"
#include "workers/sandbox/container/masked_paths.h"

static char place[64]; /* of an ordinary user's, below /opt */

static int make_place(void)
{
    char path[128];
    struct fail fail = {0};
    strcpy(place, "/opt/sluice-test-XXXXXX");
    if (!mkdtemp(place))
        return -1;
    write_host_file(place, "worker.key", "the key", 0600);
    write_host_file(place, "other", "not the worker's", 0644);
    snprintf(path, sizeof(path), "%s/data", place);
    assert_int_equal(mkdir(path, 0755), 0);
    write_host_file(path, "ledger.db", "all tasks", 0644);
    static const char *const own[] = {"", "/worker.key", "/other", "/data", "/data/ledger.db"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", place, own[i]);
        assert_int_equal(chown(path, FIXTURE_USER, FIXTURE_USER), 0);
    }
    assert_int_equal(chmod(place, 0755), 0);
    snprintf(path, sizeof(path), "%s/worker.key", place);
    assert_int_equal(masked_paths_keep(path, &fail), 0);
    snprintf(path, sizeof(path), "%s/data", place);
    assert_int_equal(masked_paths_keep(path, &fail), 0);
    return 0;
}

FIBER_TEST(the_workers_own_files_are_not_seen_inside)
{
    char command[512];
    struct sandbox *sandbox = open_host();
    snprintf(command, sizeof(command),
             "cd %s; for f in worker.key data/ledger.db other; do echo $(cat $f 2>/dev/null); "
             "done; ls data 2>/dev/null; echo end",
             place);
    expect_text(sandbox, command, "\n\nnot the worker's\nend\n");
    sandbox_close(&sandbox);
}

/* As an operator may list one that holds them: by their real path in it. */
FIBER_TEST(nor_in_an_image_that_they_lie_in)
{
    char command[512], *text;
    struct sandbox_plan plan = host_plan();
    plan.image = place;
    snprintf(command, sizeof(command),
             "mkdir -p %s/usr/bin %s/lib64 && cd %s && cp -L --parents /usr/bin/bash /usr/bin/cat . && "
             "for file in $(ldd /usr/bin/bash /usr/bin/cat | grep -o '/[^ ]*\\.so[^ ]*'); do cp -L "
             "--parents $file .; done; ln -sfn usr/bin bin",
             place, place, place);
    assert_int_equal(system(command), 0);
    struct sandbox *sandbox = open_sandbox(&plan);
    assert_int_equal(
        run_text(sandbox, "for f in /worker.key /data/ledger.db /other; do echo $(cat $f 2>/dev/null); done", &text),
        0);
    assert_string_equal(text, "\n\nnot the worker's\n");
    free(text);
    sandbox_close(&sandbox);
}

static bool is_listed(const char *path)
{
    struct secret secret;
    for (size_t at = 0; masked_paths_next(&at, &secret);)
        if (strcmp(secret.path, path + 1) == 0)
            return true;
    return false;
}

static void what_the_command_line_names_is_the_workers_own(void **state)
{
    char dir[] = "/tmp/sluice-told-XXXXXX", data[64], key[64], broker[96], sockets[64], images[64], within[96];
    struct options options;
    struct fail fail = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(data, sizeof(data), "%s/data", dir);
    snprintf(key, sizeof(key), "%s/search.key", dir);
    snprintf(sockets, sizeof(sockets), "%s/sockets", dir);
    snprintf(broker, sizeof(broker), "ipc://%s/front", sockets);
    snprintf(images, sizeof(images), "%s/images", dir);
    snprintf(within, sizeof(within), "%s/cache/images", data);
    assert_int_equal(mkdir(sockets, 0755) | mkdir(images, 0755), 0);
    write_host_file(dir, "search.key", "a-key\n", 0600);
    char *argv[] = {(char[]){"sluice-worker"},
                    (char[]){"run"},
                    (char[]){"--data"},
                    data,
                    (char[]){"--search"},
                    (char[]){"tavily=https://127.0.0.1:1"},
                    (char[]){"--search-key"},
                    key,
                    (char[]){"--broker"},
                    broker,
                    (char[]){"--images"},
                    images,
                    NULL};
    assert_int_equal(options_begin(11, argv + 1, &options), -1);
    if (options_make_directories(&options, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(masked_paths_find(false, &fail), 0);
    assert_true(is_listed(data) && is_listed(key) && is_listed(sockets) && !is_listed(images));
    assert_true(is_listed(options.store) && is_listed(options.cache));
    assert_string_equal(options.plan.images.listed[0], images);
    assert_int_equal(image_list_add(&options.plan.images, within, &fail), -EINVAL);
    options_finish(&options);
    assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest both[] = {TEST(the_workers_own_files_are_not_seen_inside),
                                      TEST(nor_in_an_image_that_they_lie_in)};
    const struct CMUnitTest told[] = {cmocka_unit_test(what_the_command_line_names_is_the_workers_own)};
    const struct CMUnitTest without_images[] = {TEST(the_workers_own_files_are_not_seen_inside)};
    fixture_tier = TIER_overlay_tmpfs;
    int failed = cmocka_run_group_tests_name("overlay-tmpfs", both, NULL, NULL);
    fixture_tier = TIER_landlock;
    failed |= cmocka_run_group_tests_name("the command line", told, NULL, NULL);
    return cmocka_run_group_tests_name("landlock", without_images, NULL, NULL) || failed;
}

int main(void)
{
    if (geteuid() != 0 || make_place() < 0) {
        printf("SKIPPED: only root can make files below /opt\n");
        return 0;
    }
    int failed = run_as_everyone(group);
    return nftw(place, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 || failed;
}
