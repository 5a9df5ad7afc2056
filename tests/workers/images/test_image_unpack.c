/* Images unpacked into directories: what comes out, what is left out, what is refused. */
#include "tests/workers/images/image_fixture.h"
#include "common/files/dirtree_remove.h"

static void unpack_good(const char *image, const char *name, struct rootfs_counts *counts)
{
    struct image_trouble trouble = {0};
    if (unpack_into(image, name, &wide, counts, &trouble) < 0)
        fail_msg("%s: %s", image, trouble.fail.text);
}

static void expect_tree(const char *name)
{
    char root[256], path[320];
    snprintf(root, sizeof(root), "%s/%s", directory, name);
#define AT(below) (snprintf(path, sizeof(path), "%s/" below, root), path)
    expect_file(AT("etc/motd"), "hello\n");
    expect_file(AT("na me"), "x\n");
    struct stat motd = stat_of(AT("etc/motd")), issue = stat_of(AT("etc/issue"));
    assert_int_equal(motd.st_ino, issue.st_ino);
    assert_int_equal(motd.st_nlink, 2);
    assert_int_equal(motd.st_mtime, 1000000000);
    assert_int_equal(motd.st_uid, geteuid());
    assert_int_equal(motd.st_gid, getegid());
    assert_int_equal(stat_of(AT("usr/bin/hello")).st_mode & 07777, 0755); /* it was set-uid */
    assert_int_equal(stat_of(AT("etc/shadow")).st_mode & 07777, 0600);
    assert_int_equal(stat_of(AT("tmp")).st_mode & 07777, 01777);
    assert_int_equal(stat_of(AT("shut")).st_mode & 07777, 0700);
    struct stat sparse = stat_of(AT("sparse"));
    assert_int_equal(sparse.st_size, (8 << 20) + 3);
    assert_true(sparse.st_blocks < 256);
    char link[16] = "", color[8] = "";
    assert_int_equal(readlink(AT("bin"), link, sizeof(link) - 1), 7);
    assert_string_equal(link, "usr/bin");
    assert_int_equal(getxattr(AT("etc/motd"), "user.color", color, sizeof(color)), 3);
    assert_string_equal(color, "red");
    assert_false(is_there(AT("fifo")));
    assert_false(is_there(AT("null")));
#undef AT
}

static void a_sif_of_gzip_or_zstd_comes_out_as_it_was_and_is_ours(void **state)
{
    (void)state;
    char path[512];
    struct rootfs_counts counts;
    fixture_path(path, "plain.sif");
    unpack_good(path, "plain", &counts);
    expect_tree("plain");
    assert_int_equal(counts.devices, 1);
    assert_int_equal(counts.sockets, 1);
    fixture_path(path, "many.sif");
    unpack_good(path, "many", &counts);
    expect_tree("many");
    assert_int_equal(counts.devices, 0);
}

static void a_squashfs_file_alone_is_an_image_too(void **state)
{
    (void)state;
    size_t size;
    struct rootfs_counts counts;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    unpack_good(write_image("root.squashfs", data + 32768, size - 32768), "root", &counts);
    expect_tree("root");
}

static void a_directory_is_copied_with_links_holes_and_attributes(void **state)
{
    (void)state;
    char path[512];
    struct rootfs_counts counts;
    fixture_path(path, "plain.sif");
    unpack_good(path, "first", &counts);
    assert_int_equal(mkfifo(in_directory("first/pipe"), 0600), 0);
    unpack_good(in_directory("first"), "copy", &counts);
    expect_tree("copy");
    assert_int_equal(counts.sockets, 1);
    assert_false(is_there(in_directory("copy/pipe")));
}

static void limits_refuse_by_name_and_leave_nothing(void **state)
{
    (void)state;
    char path[512];
    const struct {
        struct rootfs_limits limits;
        const char *words;
    } rows[] = {
        {{.bytes = 38, .entries = 100}, "more than 38 bytes (limit: bytes)"},
        {{.bytes = 100, .entries = 5}, "more than 5 (limit: entries)"},
    };
    fixture_path(path, "plain.sif");
    for (size_t i = 0; i < 2; i++) {
        struct rootfs_counts counts;
        struct image_trouble trouble = {0};
        assert_int_equal(unpack_into(path, "out", &rows[i].limits, &counts, &trouble), -EBADMSG);
        expect_refusal(&trouble, IMAGE_REFUSAL_TOO_LARGE, rows[i].words);
        assert_false(is_there(in_directory("out")));
    }
    struct rootfs_counts counts;
    struct image_trouble trouble = {0};
    const struct rootfs_limits exact = {.bytes = 39, .entries = 100};
    assert_int_equal(unpack_into(path, "out", &exact, &counts, &trouble), 0);
    assert_int_equal(counts.bytes, 39);
}

/* Before anything is written, where that can be known. */
static int count_with(const struct rootfs_limits *limits, const atomic_bool *stop, struct rootfs_counts *ret,
                      struct image_trouble *trouble)
{
    char path[512];
    struct image image;
    struct rootfs rootfs;
    fixture_path(path, "plain.sif");
    *trouble = (struct image_trouble){0};
    assert_int_equal(image_open(path, &image, trouble), 0);
    rootfs_init(&rootfs, -1, limits, stop, trouble);
    int code = image_count(&image, &rootfs);
    *ret = rootfs.counts;
    rootfs_finish(&rootfs);
    image_close(&image);
    return code;
}

static void what_it_unpacks_to_is_known_and_limited_before_it_does(void **state)
{
    (void)state;
    struct rootfs_counts counts, done;
    struct image_trouble trouble;
    char path[512];
    const struct rootfs_limits few = {.bytes = 38, .entries = 100};
    assert_int_equal(count_with(&few, &never, &counts, &trouble), -EBADMSG);
    expect_refusal(&trouble, IMAGE_REFUSAL_TOO_LARGE, "more than 38 bytes (limit: bytes)");
    static atomic_bool stop = true;
    assert_int_equal(count_with(&wide, &stop, &counts, &trouble), -ECANCELED);
    assert_int_equal(count_with(&wide, &never, &counts, &trouble), 0);
    fixture_path(path, "plain.sif");
    unpack_good(path, "out", &done);
    assert_int_equal(counts.bytes, done.bytes);
    assert_int_equal(counts.entries, done.entries);
    assert_int_equal(counts.devices, done.devices);
}

static void a_stopped_unpack_leaves_nothing(void **state)
{
    (void)state;
    char path[512];
    static atomic_bool stop = true;
    struct image image;
    struct rootfs_counts counts;
    struct image_trouble trouble = {0};
    const struct image_order order = {.limits = wide, .stop = &stop};
    fixture_path(path, "plain.sif");
    assert_int_equal(image_open(path, &image, &trouble), 0);
    assert_int_equal(image_unpack_to(&image, in_directory("out"), &order, &counts, &trouble), -ECANCELED);
    assert_false(is_there(in_directory("out")));
    image_close(&image);
}

/* Every fifth byte of the SquashFS in turn is another: it is refused by name, or it still unpacks. */
static void a_byte_that_is_another_is_refused_or_does_not_matter(void **state)
{
    (void)state;
    size_t size, refused = 0;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    for (size_t at = 32768; at < size && at < 32768 + 1000; at += 5) {
        struct rootfs_counts counts;
        struct image_trouble trouble = {0};
        uint8_t before = data[at];
        data[at] ^= 0x55;
        int code = unpack_into(write_image("bad.sif", data, size), "out", &wide, &counts, &trouble);
        data[at] = before;
        if (code < 0 && trouble.refusal == IMAGE_REFUSAL_NONE && code != -ENOMEM)
            fail_msg("byte %zu: %d %s", at, code, trouble.fail.text);
        if (code < 0)
            assert_true(trouble.fail.text[0] && !is_there(in_directory("out")));
        else
            assert_int_equal(dirtree_remove(in_directory("out")), 0);
        refused += code < 0;
    }
    assert_true(refused > 60);
}

static void a_squashfs_cut_short_is_truncated(void **state)
{
    (void)state;
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    struct image_trouble trouble = {0};
    struct rootfs_counts counts;
    const char *path = write_image("short.squashfs", data + 32768, 500);
    assert_int_equal(unpack_into(path, "out", &wide, &counts, &trouble), -EBADMSG);
    expect_refusal(&trouble, IMAGE_REFUSAL_TRUNCATED, "and 500 are there");
}

static void what_is_no_image_is_refused_with_what_to_do(void **state)
{
    (void)state;
    write_image("text", "#!/bin/sh\n", 10);
    assert_int_equal(mkfifo(in_directory("fifo"), 0600), 0);
    assert_int_equal(mkdir(in_directory("saved"), 0755), 0);
    write_image("saved/manifest.json", "[]", 2);
    const struct {
        const char *name;
        enum image_refusal refusal;
        const char *words;
    } rows[] = {
        {in_directory("none.sif"), IMAGE_REFUSAL_MISSING, "there is no image /tmp/sluice-test"},
        {in_directory("none:tag"), IMAGE_REFUSAL_MISSING, "there is no image"},
        {in_directory("text"), IMAGE_REFUSAL_UNKNOWN, "neither a SIF nor a SquashFS"},
        {in_directory("fifo"), IMAGE_REFUSAL_UNKNOWN, "neither a file nor a directory"},
        {in_directory("saved"), IMAGE_REFUSAL_OCI_LAYOUT, "`docker save` wrote before Docker 25"},
        {"docker://debian:12", IMAGE_REFUSAL_REMOTE,
         "`apptainer build debian_12.sif docker://debian:12` or "
         "`skopeo copy docker://debian:12 oci:debian_12:latest`"},
        {"library://lolcow", IMAGE_REFUSAL_REMOTE, "`apptainer build lolcow.sif library://lolcow`"},
        {"oras://ghcr.io/a/b:1", IMAGE_REFUSAL_REMOTE, "`apptainer build b_1.sif oras://ghcr.io/a/b:1`"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct image image;
        struct image_trouble trouble = {0};
        assert_int_equal(image_open(rows[i].name, &image, &trouble), -EBADMSG);
        expect_refusal(&trouble, rows[i].refusal, rows[i].words);
    }
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_images, tear_down_images)
    const struct CMUnitTest tests[] = {
        TEST(a_sif_of_gzip_or_zstd_comes_out_as_it_was_and_is_ours),
        TEST(a_squashfs_file_alone_is_an_image_too),
        TEST(a_directory_is_copied_with_links_holes_and_attributes),
        TEST(limits_refuse_by_name_and_leave_nothing),
        TEST(what_it_unpacks_to_is_known_and_limited_before_it_does),
        TEST(a_stopped_unpack_leaves_nothing),
        TEST(a_byte_that_is_another_is_refused_or_does_not_matter),
        TEST(a_squashfs_cut_short_is_truncated),
        TEST(what_is_no_image_is_refused_with_what_to_do),
    };
    return cmocka_run_group_tests_name("image_unpack", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
