/* What an image says of how it is to be run: OCI configs, Apptainer's exports, and the files where they are. */
#include "tests/workers/images/oci_fixture.h"

#include "workers/images/config.h"
#include "workers/images/exports.h"
#include "workers/images/image.h"
#include "workers/images/users.h"

static struct image_config parsed(const char *text)
{
    struct image_config config;
    struct fail fail = {0};
    if (image_config_parse(slice_from_str(text), &config, &fail) < 0)
        fail_msg("%s: %s", text, fail.text);
    return config;
}

static void expect_refused(const char *text, const char *words)
{
    struct image_config config;
    struct fail fail = {0};
    assert_int_equal(image_config_parse(slice_from_str(text), &config, &fail), -EINVAL);
    if (!strstr(fail.text, words))
        fail_msg("%s: %s", text, fail.text);
}

static void a_config_is_read_whether_it_is_within_one_or_not(void **state)
{
    static const char *const texts[] = {
        "{\"config\":{\"Env\":[\"A=1\",\"PATH=/x:/y\",\"A=2\"],\"WorkingDir\":\"/app\",\"User\":\"me:us\"}}",
        "{\"Env\":[\"A=1\",\"PATH=/x:/y\",\"A=2\"],\"WorkingDir\":\"/app\",\"User\":\"me:us\"}"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct image_config config = parsed(texts[i]);
        assert_int_equal(config.variable_count, 2);
        assert_string_equal(image_config_get(&config, "A"), "2");
        assert_string_equal(image_config_get(&config, "PATH"), "/x:/y");
        assert_null(image_config_get(&config, "PAT"));
        assert_string_equal(config.workdir, "/app");
        assert_string_equal(config.user, "me:us");
        image_config_finish(&config);
    }
}

static void nothing_is_said_by_what_is_empty(void **state)
{
    static const char *const texts[] = {"{}", "{\"config\":null}", "{\"config\":{}}",
                                        "{\"config\":{\"Env\":null,\"User\":\"\",\"WorkingDir\":\"\"}}"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct image_config config = parsed(texts[i]);
        assert_true(config.variable_count == 0 && !config.user && !config.workdir);
        image_config_finish(&config);
    }
}

static void variables_of_odd_names_are_passed_over(void **state)
{
    struct image_config config = parsed("{\"Env\":[\"a-b=1\",\"SLUICE_KEY=x\",\"=x\",\"1A=x\",\"B=\"]}");
    (void)state;
    assert_int_equal(config.variable_count, 1);
    assert_string_equal(image_config_get(&config, "B"), "");
    image_config_finish(&config);
}

static void what_is_none_is_refused_in_words(void **state)
{
    (void)state;
    expect_refused("[]", "not a JSON object");
    expect_refused("{", "not a JSON object");
    expect_refused("{\"config\":1}", "not an object");
    expect_refused("{\"Env\":\"A=1\"}", "not a list");
    expect_refused("{\"Env\":[1]}", "not NAME=VALUE");
    expect_refused("{\"Env\":[\"A\"]}", "not NAME=VALUE");
    expect_refused("{\"User\":\"a b\"}", "User");
    expect_refused("{\"User\":7}", "User");
    expect_refused("{\"WorkingDir\":\"app\"}", "WorkingDir");
    expect_refused("{\"WorkingDir\":\"/a/../..\"}", "WorkingDir");
}

static void an_environment_beyond_the_bounds_is_refused(void **state)
{
    AUTO_BUFFER text = {0};
    (void)state;
    buffer_printf(&text, "{\"Env\":[\"A0=\"");
    for (int i = 1; i <= IMAGE_VARIABLES_MAX; i++)
        buffer_printf(&text, ",\"A%d=\"", i);
    buffer_append(&text, "]}", 3);
    expect_refused((const char *)text.data, "more than");
}

static const char *exported(struct image_config *config, const char *text, const char *name)
{
    *config = (struct image_config){0};
    assert_int_equal(image_config_read_exports(slice_from_str(text), config), 0);
    return image_config_get(config, name);
}

static void exports_are_read_where_no_shell_is_needed(void **state)
{
    static const struct {
        const char *text, *value;
    } cases[] = {
        {"export A=1\n", "1"},
        {"  export A=\"a b\"\n", "a b"},
        {"export A='$x \"y\"'", "$x \"y\""},
        {"export A=\"q\\\"q\\$\"", "q\"q$"},
        {"export A=\"${A:-\"C.UTF-8\"}\"\n", "C.UTF-8"},
        {"export A=x\nexport A=\"${A:-y}\"\n", "x"},
        {"export A=/opt/bin:$PATH\n", "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"export B=b\nexport A=\"$B${B}c\"\n", "bbc"},
        {"export A=\n", ""},
        {"export A=$(id)\n", NULL},
        {"export A=`id`\n", NULL},
        {"export A=$UNKNOWN\n", NULL},
        {"export A=\"open\n", NULL},
        {"export A=1; rm x\n", NULL},
        {"export A=1 B=2\n", NULL},
        {"A=1\n", NULL},
        {"export A\n", NULL},
        {"export A=${\n", NULL},
        {"export A=${A:-\n", NULL},
        {"if true; then export A=1; fi", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct image_config config;
        const char *value = exported(&config, cases[i].text, "A");
        if ((value == NULL) != (cases[i].value == NULL) || (value && strcmp(value, cases[i].value) != 0))
            fail_msg("%s: %s", cases[i].text, value ? value : "(none)");
        image_config_finish(&config);
    }
}

static void put(const char *name, const char *text) { write_image(name, text, strlen(text)); }

static struct image_config loaded(const char *image, const char *root, const char *prepared)
{
    struct image_config config;
    struct fail fail = {0};
    if (image_config_load(in_directory(image), in_directory(root), prepared ? in_directory(prepared) : NULL, &config,
                          &fail) < 0)
        fail_msg("%s", fail.text);
    return config;
}

static void make(const char *name) { assert_int_equal(mkdir(in_directory(name), 0755), 0); }

static void the_file_beside_counts_before_those_within(void **state)
{
    (void)state;
    make("root");
    make("root/.singularity.d");
    make("root/.singularity.d/env");
    put("root/.singularity.d/env/10-docker.sh", "export A=apptainers\nexport B=b\n");
    put("root/.singularity.d/env/90-environment.sh", "export A=later\n");
    put("root/.singularity.d/env/notes", "export A=no\n");
    struct image_config config = loaded("root", "root", NULL);
    assert_string_equal(image_config_get(&config, "A"), "later");
    assert_string_equal(image_config_get(&config, "B"), "b");
    image_config_finish(&config);
    make("key");
    put("key/config.json", "{\"Env\":[\"A=prepared\"]}");
    config = loaded("root", "root", "key");
    assert_string_equal(image_config_get(&config, "A"), "prepared");
    assert_null(image_config_get(&config, "B"));
    image_config_finish(&config);
    put("root.config.json", "{\"Env\":[\"A=beside\"]}");
    config = loaded("root", "root", "key");
    assert_string_equal(image_config_get(&config, "A"), "beside");
    image_config_finish(&config);
}

static void links_of_an_image_lead_nowhere(void **state)
{
    (void)state;
    make("outside");
    put("outside/x.sh", "export A=outside\n");
    make("linked");
    make("linked/.singularity.d");
    assert_int_equal(symlink(in_directory("outside"), in_directory("linked/.singularity.d/env")), 0);
    struct image_config config = loaded("linked", "linked", NULL);
    assert_int_equal(config.variable_count, 0);
    image_config_finish(&config);
}

static void a_damaged_file_beside_is_the_images_fault(void **state)
{
    struct image_config config;
    struct fail fail = {0};
    (void)state;
    make("bad");
    put("bad.config.json", "{\"Env\":3}");
    assert_int_equal(image_config_load(in_directory("bad"), in_directory("bad"), NULL, &config, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "bad.config.json"));
}

/* ---- users ---------------------------------------------------------------------------------- */

static int find(const char *text, struct user_entry *ret, struct fail *fail)
{
    static const char *roots[3];
    roots[0] = in_directory("upper");
    roots[1] = in_directory("lower");
    return users_find(roots, 2, text, ret, fail);
}

static void users_are_looked_up_in_the_uppermost_file(void **state)
{
    struct user_entry entry;
    struct fail fail = {0};
    (void)state;
    make("upper");
    make("lower");
    make("upper/etc");
    make("lower/etc");
    put("lower/etc/passwd", "me:x:7:7::/old:/bin/sh\n");
    put("upper/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nme:x:1001:1002:Me,,:/home/me:/bin/bash\nshort:x:5\n");
    put("lower/etc/group", "us:x:77:me\n");
    assert_int_equal(find("me", &entry, &fail), 0);
    assert_true(entry.uid == 1001 && entry.gid == 1002);
    assert_string_equal(entry.home, "/home/me");
    assert_int_equal(find("1001:us", &entry, &fail), 0);
    assert_true(entry.uid == 1001 && entry.gid == 77);
    assert_int_equal(find("4711", &entry, &fail), 0);
    assert_true(entry.uid == 4711 && entry.gid == 4711 && !entry.home[0]);
    assert_int_equal(find("4711:12", &entry, &fail), 0);
    assert_true(entry.uid == 4711 && entry.gid == 12);
    assert_int_equal(find("who", &entry, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "no user who"));
    assert_int_equal(find("me:who", &entry, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "no group who"));
    assert_int_equal(find("short", &entry, &fail), -EINVAL);
    assert_int_equal(find("99999999999", &entry, &fail), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_is_read_whether_it_is_within_one_or_not),
        cmocka_unit_test(nothing_is_said_by_what_is_empty),
        cmocka_unit_test(variables_of_odd_names_are_passed_over),
        cmocka_unit_test(what_is_none_is_refused_in_words),
        cmocka_unit_test(an_environment_beyond_the_bounds_is_refused),
        cmocka_unit_test(exports_are_read_where_no_shell_is_needed),
        cmocka_unit_test_setup_teardown(the_file_beside_counts_before_those_within, set_up_images, tear_down_images),
        cmocka_unit_test_setup_teardown(links_of_an_image_lead_nowhere, set_up_images, tear_down_images),
        cmocka_unit_test_setup_teardown(a_damaged_file_beside_is_the_images_fault, set_up_images, tear_down_images),
        cmocka_unit_test_setup_teardown(users_are_looked_up_in_the_uppermost_file, set_up_images, tear_down_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
