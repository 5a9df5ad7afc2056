/* Dockerfiles with more instructions that change files than a sandbox has layers, on each way of making sandboxes; and
 * what is too long. */
#define FIXTURE_LIMIT_MS 240000 /* hundreds of sandboxes */
#include "tests/workers/stages/build/build_world.h"

#include "workers/sandbox/container/landlock.h"
#include "workers/stages/sandbox/parents.h"

/* ---- what it makes ------------------------------------------------------------------------------------ */

/*
 * `count` lines behind FROM: each makes files/N or copies copied/N; every tenth removes what the one nine before made,
 * every fiftieth all that was made, as a directory of its own that hides it, and one of the image's.
 */
static void add_lines(struct buffer *text, int count)
{
    for (int i = 1; i <= count; i++)
        if (i % 50 == 0)
            buffer_printf(text, "RUN rm -r /files /home/me && mkdir /files /home/me && echo %d > /files/%d\n", i, i);
        else if (i % 10 == 0)
            buffer_printf(text, "RUN rm -f /files/%d && echo %d > /usr/bin/last\n", i - 9, i);
        else if (i % 2 == 0)
            buffer_printf(text, "COPY f /copied/%d\n", i);
        else
            buffer_printf(text, "RUN mkdir -p /files && echo %d > /files/%d\n", i, i);
}

static size_t count_layers(const struct job *init)
{
    struct fail fail = {0};
    AUTO_FREE struct parents *parents = calloc(1, sizeof(*parents));
    AUTO_FREE char *root = NULL;
    if (layer_unpack(&context.layers, init->result.layer.digest, buffer_peek(&init->result.layer.inlined), &root,
                     &fail) < 0 ||
        parents_read(root, parents, &fail) < 0)
        fail_msg("%s", fail.text);
    return parents->count;
}

/* `count` is a multiple of fifty. */
static void expect_long(int count)
{
    char command[256], printed[128];
    AUTO_BUFFER text = {0};
    host("echo f > f; touch ../base/home/me/of-the-image");
    buffer_printf(&text, "FROM plain\n");
    add_lines(&text, count);
    buffer_append(&text, "", 1);
    snprintf(command, sizeof(command),
             "ls /files; cat /files/*; ls /copied | wc -l; cat /copied/%d /usr/bin/last; ls -A /home/me; "
             "find / -xdev -type c | grep -v /dev/",
             count - 2);
    snprintf(printed, sizeof(printed), "%d\n%d\n%d\nf\n%d\n", count, count, count * 2 / 5, count - 10);
    const char *task = task_of((const char *)text.data, command,
                               "{\"eval\":{\"kind\":\"command\",\"command\":\"true\"}}");
    struct job init = run_stage(STAGE_INIT, task, NULL, NULL, NULL);
    expect(&init, OUTCOME_OK, "");
    assert_true(count_layers(&init) <= PARENTS_MAX);
    struct job run = run_stage(STAGE_RUN, task, &init.result.layer, NULL, NULL);
    expect(&run, OUTCOME_OK, "");
    assert_string_equal(agent_output, printed);
    end_job(&init);
    end_job(&run);
}

FIBER_TEST(a_long_dockerfile_is_built_and_run) { expect_long(fixture_tier == TIER_overlay_tmpfs ? 200 : 100); }

/* ---- once ------------------------------------------------------------------------------------------------- */

static size_t count_keys(void)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/builds/keys", store);
    size_t count = 0;
    DIR *stream = opendir(path);
    for (const struct dirent *entry; stream && (entry = readdir(stream));)
        count += entry->d_name[0] != '.' && !strchr(entry->d_name, '.');
    assert_non_null(stream);
    closedir(stream);
    return count;
}

static void build_with(const char *last)
{
    AUTO_BUFFER text = {0};
    buffer_printf(&text, "FROM plain\n");
    for (size_t i = 0; i < PARENTS_MAX; i++)
        buffer_printf(&text, "COPY f /f%zu\n", i);
    buffer_printf(&text, "COPY f %s\n", last);
    buffer_append(&text, "", 1);
    struct job init = run_stage(STAGE_INIT, task_of((const char *)text.data, "true", "{}"), NULL, NULL, NULL);
    expect(&init, OUTCOME_OK, "");
    assert_int_equal(count_layers(&init), 2);
    end_job(&init);
}

FIBER_TEST(what_becomes_one_layer_is_made_once_for_all_that_begin_so)
{
    host("echo f > f");
    build_with("/one");
    assert_int_equal(count_keys(), PARENTS_MAX + 2);
    build_with("/two");
    assert_int_equal(count_keys(), PARENTS_MAX + 3);
}

/* ---- what is too long ---------------------------------------------------------------------------------------- */

static void expect_refused(const char *line, size_t count, const char *words)
{
    AUTO_BUFFER text = {0};
    buffer_printf(&text, "FROM plain\n");
    for (size_t i = 0; i < count; i++)
        buffer_append_str(&text, line);
    buffer_append(&text, "", 1);
    expect_failed((const char *)text.data, "{}", words);
}

FIBER_TEST(what_is_too_long_is_refused_by_its_line)
{
    expect_refused("RUN true\n", 1024, "the Dockerfile: line 1025: more than 1024 instructions");
    expect_refused("FROM plain\n", 64, "the Dockerfile: line 65: more than 64 stages");
    expect_refused("FROM a\n", 5000, "the Dockerfile: line 1025: more than 1024 instructions");
}

/* ---- without namespaces ----------------------------------------------------------------------------------------- */

static int set_up_landlock(void **state)
{
    fixture_tier = TIER_landlock;
    return set_up_build(state);
}

FIBER_TEST(where_there_are_no_images_a_dockerfile_is_given_back_by_the_node)
{
    expect_init(task_of("FROM plain\nRUN true\n", "true", "{}"), OUTCOME_INFRA,
                "sandboxes of the tier landlock have no images but \"host\"");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_build, tear_down_build)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_long_dockerfile_is_built_and_run),
    };
    const struct CMUnitTest others[] = {
        TEST(what_becomes_one_layer_is_made_once_for_all_that_begin_so),
        TEST(what_is_too_long_is_refused_by_its_line),
    };
    const struct CMUnitTest landlock[] = {
        cmocka_unit_test_setup_teardown(where_there_are_no_images_a_dockerfile_is_given_back_by_the_node,
                                        set_up_landlock, tear_down_build),
    };
    int failed = cmocka_run_group_tests_name("long builds", tests, NULL, NULL);
    if (fixture_tier != TIER_overlay_tmpfs)
        return failed;
    failed |= cmocka_run_group_tests_name("long builds, once", others, NULL, NULL);
    if (landlock_abi() >= LANDLOCK_ABI_NEEDED)
        return cmocka_run_group_tests_name("builds without images", landlock, NULL, NULL) || failed;
    printf("SKIPPED: the kernel has no Landlock of ABI %d\n", LANDLOCK_ABI_NEEDED);
    return failed;
}

int main(void) { return run_in_every_tier(group); }
