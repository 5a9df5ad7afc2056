/* The sandbox that is made before it is asked for. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <dirent.h>
#include <signal.h>

#include "common/base/clock.h"
#include "workers/sandbox/container/high_fds.h"
#include "workers/sandbox/spawner_start.h"

enum { CHILDREN_MAX = 64, OWN_MAX = 16, LATE_MS = 20000 };

struct children {
    pid_t each[CHILDREN_MAX];
    size_t count;
};

/* Of the spawner: sandboxes, and the spare one. */
static struct children list_children(void)
{
    char path[64];
    struct children children = {.count = 0};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", spawner_pid(spawner), spawner_pid(spawner));
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    while (children.count < CHILDREN_MAX && fscanf(list, "%d", &children.each[children.count]) == 1)
        children.count++;
    fclose(list);
    return children;
}

static struct children await_children(size_t count)
{
    struct children children = list_children();
    for (int64_t until_ms = clock_ms() + LATE_MS; children.count != count && clock_ms() < until_ms;) {
        assert_int_equal(await_sleep(5), 0);
        children = list_children();
    }
    assert_int_equal(children.count, count);
    return children;
}

FIBER_TEST(the_next_one_is_there_before_it_is_asked_for)
{
    struct sandbox *sandboxes[3];
    assert_int_equal(list_children().count, 0); /* nobody has asked for any */
    for (size_t i = 0; i < 3; i++) {
        sandboxes[i] = open_host();
        await_children(i + 2);
    }
    for (size_t i = 0; i < 3; i++) {
        expect_text(sandboxes[i], "echo $$ > mine; ls", "mine\n");
        sandbox_close(&sandboxes[i]);
    }
    await_children(1);
}

FIBER_TEST(one_that_has_ended_is_not_given_away)
{
    struct sandbox *sandboxes[4];
    for (size_t i = 0; i < 4; i++) {
        sandboxes[i] = open_host();
        struct children children = await_children(i + 2);
        assert_int_equal(kill(children.each[i + 1], SIGKILL), 0);
        await_children(i + 1);
    }
    for (size_t i = 0; i < 4; i++) {
        expect_text(sandboxes[i], "echo lives", "lives\n");
        sandbox_close(&sandboxes[i]);
    }
}

/* How many descriptors it has; -1 when one is a process's, which none has but the spawner. */
static int count_descriptors(pid_t pid)
{
    char path[64], link[256];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
        link[len > 0 ? len : 0] = '\0';
        count += len > 0;
        if (strstr(link, "pidfd"))
            count = -1000;
    }
    closedir(dir);
    return count;
}

FIBER_TEST(it_holds_nothing_of_those_before_it)
{
    struct sandbox *sandboxes[8];
    for (size_t i = 0; i < 8; i++)
        sandboxes[i] = open_host();
    struct children children = await_children(9);
    int count = count_descriptors(children.each[8]);
    for (int64_t until_ms = clock_ms() + LATE_MS; (count < 0 || count > OWN_MAX) && clock_ms() < until_ms;) {
        assert_int_equal(await_sleep(5), 0); /* it has just been made */
        count = count_descriptors(children.each[8]);
    }
    if (count < 0 || count > OWN_MAX)
        fail_msg("the spare one has %d descriptors", count);
    for (size_t i = 0; i < 8; i++)
        sandbox_close(&sandboxes[i]);
}

/* What the kernel has room for in what it has for each process anyhow: high_fds.h. */
static uint64_t count_places(pid_t pid) { return fixture_read_status(pid, "FDSize: %llu"); }

static void expect_small_tables(bool kernels)
{
    enum { MANY = 40 };
    struct sandbox *sandboxes[MANY];
    struct sandbox_plan plan = host_plan();
    plan.kernels = kernels; /* in a zygote's namespace: the first child */
    for (size_t i = 0; i < MANY; i++)
        sandboxes[i] = open_sandbox(&plan);
    struct children children = await_children(MANY + 1 + kernels);
    assert_true(count_places(spawner_pid(spawner)) > HIGH_FDS_FROM); /* or this shows nothing */
    for (size_t i = kernels; i < children.count - 1; i++)
        assert_int_equal(count_places(children.each[i]), HIGH_FDS_FROM);
    for (size_t i = 0; i < MANY; i++)
        sandbox_close(&sandboxes[i]);
}

FIBER_TEST(its_table_of_descriptors_is_small_however_many_live) { expect_small_tables(false); }
FIBER_TEST(on_a_floor_too) { expect_small_tables(true); }

static int count_mappings(pid_t pid, bool *has_sanitizer)
{
    char path[64], line[512];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    assert_non_null(maps);
    for (; fgets(line, sizeof(line), maps); count++)
        *has_sanitizer |= strstr(line, "san.so") != NULL;
    fclose(maps);
    return count;
}

/* A library, or an address that is chosen anew, costs every sandbox pages; so do sanitizers,
 * whose builds show nothing. */
FIBER_TEST(it_has_few_mappings)
{
    enum { MAPPINGS = 12, TABLES_KIB = 44 };
    bool has_sanitizer = false;
    struct sandbox *sandbox = open_host();
    pid_t pid = find_child(spawner_pid(spawner), "sluice-init");
    int mappings = count_mappings(pid, &has_sanitizer), tables_kib = (int)fixture_read_status(pid, "VmPTE: %llu");
    if (!has_sanitizer && (mappings > MAPPINGS || tables_kib > TABLES_KIB))
        fail_msg("%d mappings, %d KiB of page tables", mappings, tables_kib);
    sandbox_close(&sandbox);
}

FIBER_TEST(each_gets_what_its_own_plan_says)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *first = open_sandbox(&plan);
    await_children(2);
    plan.disk_mib = 5;
    plan.inodes = 99;
    struct sandbox *second = open_sandbox(&plan);
    expect_text(first, "df --output=size -m /workspace | tail -1 | tr -d ' '", "64\n");
    expect_text(second, "df --output=size -m /workspace | tail -1 | tr -d ' '", "5\n");
    expect_text(second,
                "for i in {1..200}; do echo > f$i || break; done 2>/dev/null; ls | wc -l | sed "
                "'s/^1[0-9][0-9]$/many/'",
                "many\n");
    sandbox_close(&second);
    sandbox_close(&first);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_next_one_is_there_before_it_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_has_ended_is_not_given_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_holds_nothing_of_those_before_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_table_of_descriptors_is_small_however_many_live, set_up, tear_down),
        cmocka_unit_test_setup_teardown(on_a_floor_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_has_few_mappings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_gets_what_its_own_plan_says, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("spare", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
