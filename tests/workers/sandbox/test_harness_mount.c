/* A harness's directory of the host: seen by the sandboxes that are to have it, by no other, and changed by none. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <sys/mman.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/requests.h"

#define AUTO_SANDBOX __attribute__((cleanup(sandbox_close)))

static char dir[128], image[128];

static void make_harness(void)
{
    char bin[160];
    make_dir(dir, sizeof(dir), "dir");
    snprintf(bin, sizeof(bin), "%s/bin", dir);
    assert_int_equal(mkdir(bin, 0755), 0);
    write_host_file(bin, "it", "#!/bin/bash\necho it works\n", 0755);
}

/* Bash and a few more, with /opt as `make_opt` leaves it. */
static void make_image(const char *name, const char *make_opt)
{
    char command[1024];
    make_dir(image, sizeof(image), name);
    snprintf(command, sizeof(command),
             "cd %s && mkdir -p usr/bin && ln -s usr/bin bin && for p in bash cat ls mkdir; do"
             " cp -L --parents $(ldd /usr/bin/$p | grep -o '/[^ ]*') . && cp -L /usr/bin/$p usr/bin/; done && { %s; }",
             image, make_opt);
    assert_int_equal(system(command), 0);
}

static struct sandbox *open_with(const char *in, const struct sandbox_harness *harness)
{
    struct sandbox_plan plan = host_plan();
    plan.image = in;
    plan.harness = harness;
    return open_sandbox(&plan);
}

static struct sandbox *open_it(const char *in)
{
    static struct sandbox_harness harness;
    harness = (struct sandbox_harness){"one", dir};
    return open_with(in, &harness);
}

FIBER_TEST(it_is_there_read_only_for_all_of_its_sandboxes_and_for_no_other)
{
    make_harness();
    AUTO_SANDBOX struct sandbox *first = open_it("host");
    AUTO_SANDBOX struct sandbox *second = open_it("host");
    AUTO_SANDBOX struct sandbox *other = open_host();
    expect_text(first, "/opt/harness/one/bin/it; ls /opt/harness", "it works\none\n");
    expect_text(second, "/opt/harness/one/bin/it", "it works\n");
    expect_status(other, "ls /opt/harness/one", 2);
    expect_text(first, "grep -c ' /opt/harness/one ro,nosuid,nodev' /proc/self/mountinfo", "1\n");
}

FIBER_TEST(nothing_of_it_can_be_changed_or_moved)
{
    make_harness();
    AUTO_SANDBOX struct sandbox *sandbox = open_it("host");
    expect_text(sandbox,
                "cd /opt/harness; for c in 'touch one/new' 'rm -f one/bin/it' 'chmod 777 one/bin/it' 'mv one two' "
                "'mkdir two' 'rmdir one' 'rm -rf /opt/harness/one/bin'; do $c 2>/dev/null && echo $c; done; one/bin/it",
                "it works\n");
    char path[160];
    snprintf(path, sizeof(path), "%s/bin", dir);
    assert_int_equal(fixture_count_entries(path), 1);
}

FIBER_TEST(what_is_added_outside_is_seen_inside_at_once)
{
    make_harness();
    AUTO_SANDBOX struct sandbox *sandbox = open_it("host");
    write_host_file(dir, "new", "new\n", 0644);
    expect_text(sandbox, "cat /opt/harness/one/new", "new\n");
}

FIBER_TEST(on_an_image_it_covers_what_lies_there_whatever_opt_is)
{
    static const char *const opts[][2] = {
        {"none", "true"},
        {"empty", "mkdir opt"},
        {"own", "mkdir -p opt/harness/one/bin opt/harness/other"},
        {"link", "mkdir -p usr/opt && ln -s usr/opt opt"},
        {"file", "mkdir opt && : >opt/harness"},
        {"away", "mkdir opt && ln -s /tmp/nowhere opt/harness"},
    };
    make_harness();
    for (size_t i = 0; i < sizeof(opts) / sizeof(*opts); i++) {
        make_image(opts[i][0], opts[i][1]);
        AUTO_SANDBOX struct sandbox *sandbox = open_it(image);
        expect_text(sandbox, "/opt/harness/one/bin/it; ls /opt/harness; mkdir /opt/harness/x 2>/dev/null || echo no",
                    "it works\none\nno\n");
    }
}

static uint64_t packed_bytes(struct sandbox *sandbox)
{
    struct fail fail = {0};
    uint64_t bytes = 0;
    AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    if (sandbox_pack(sandbox, fd, &bytes, &fail) < 0)
        fail_msg("sandbox_pack: %s", fail.text);
    return bytes;
}

FIBER_TEST(nothing_of_it_is_packed)
{
    make_harness();
    make_image("image", "mkdir opt");
    AUTO_SANDBOX struct sandbox *with = open_it(image);
    AUTO_SANDBOX struct sandbox *without = open_with(image, NULL);
    assert_int_equal(packed_bytes(with), packed_bytes(without));
}

FIBER_TEST(one_that_is_gone_fails_with_its_name_and_is_nobodys_plan)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    plan.harness = &(struct sandbox_harness){"one", "/nowhere/at/all"};
    int code = sandbox_open(spawner, &plan, &sandbox, &fail);
    assert_int_equal(code, -ENOENT);
    assert_string_equal(fail.text, "the harness one in /nowhere/at/all: No such file or directory");
    AUTO_SANDBOX struct sandbox *next = open_host();
    expect_status(next, "true", 0);
}

FIBER_TEST(a_name_that_leads_elsewhere_is_refused)
{
    static const struct sandbox_harness wrong[] = {{"", "/tmp"}, {"..", "/tmp"}, {"a/b", "/tmp"}, {"a", "tmp"}};
    struct sandbox_plan plan = host_plan();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct sandbox *sandbox = NULL;
        struct fail fail = {0};
        plan.harness = &wrong[i];
        assert_int_equal(sandbox_open(spawner, &plan, &sandbox, &fail), -EINVAL);
        assert_string_equal(fail.text, "the harness is no name with an absolute path");
    }
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_is_there_read_only_for_all_of_its_sandboxes_and_for_no_other),
        TEST(nothing_of_it_can_be_changed_or_moved),
        TEST(what_is_added_outside_is_seen_inside_at_once),
        TEST(on_an_image_it_covers_what_lies_there_whatever_opt_is),
        TEST(nothing_of_it_is_packed),
        TEST(one_that_is_gone_fails_with_its_name_and_is_nobodys_plan),
        TEST(a_name_that_leads_elsewhere_is_refused),
    };
    return cmocka_run_group_tests_name("harness mount", tests, NULL, NULL);
}

int main(void) { return run_in_every_tier(group); }
