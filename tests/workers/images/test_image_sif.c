/* SIF files as the reference tool makes them, and damaged ones: what is found, what is refused. */
#include "tests/workers/images/image_fixture.h"

#include "workers/images/rootfs/squashfs.h"

static int read_bytes(const void *data, size_t size, struct sif *ret, struct image_trouble *trouble)
{
    const struct image_source source = image_source_of_memory(data, size);
    *trouble = (struct image_trouble){0};
    return sif_read(&source, ret, trouble);
}

static void expect_bytes(const void *data, size_t size, enum image_refusal refusal, const char *words)
{
    struct image_trouble trouble;
    struct sif sif;
    assert_int_equal(read_bytes(data, size, &sif, &trouble), -EBADMSG);
    expect_refusal(&trouble, refusal, words);
}

static void the_root_of_a_sif_is_where_siftool_put_it(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint32_t objects;
        uint64_t offset;
    } rows[] = {{"plain.sif", 1, 32768}, {"many.sif", 3, 32768}};
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        AUTO_FREE uint8_t *data = read_fixture(rows[i].name, &size);
        struct image_trouble trouble;
        struct sif sif;
        if (read_bytes(data, size, &sif, &trouble) < 0)
            fail_msg("%s: %s", rows[i].name, trouble.fail.text);
        assert_int_equal(sif.object_count, rows[i].objects);
        assert_int_equal(sif.root_offset, rows[i].offset);
        assert_int_equal(sif.root_offset + sif.root_size, size);
        assert_string_equal(sif.architecture, image_architecture());
        assert_true(sif.created_s > 1000000000);
        const struct image_source root = image_source_of_memory(data + sif.root_offset, sif.root_size);
        assert_true(squashfs_is(&root));
    }
}

static void a_sif_without_a_root_for_this_machine_is_refused_by_name(void **state)
{
    (void)state;
    const struct {
        const char *name;
        enum image_refusal refusal;
        const char *words;
    } rows[] = {
        {"oci.sif", IMAGE_REFUSAL_SIF_NO_PRIMARY, "an OCI-SIF (2 objects)"},
        {"arm64.sif", IMAGE_REFUSAL_ARCHITECTURE, "for arm64, this node is"},
        {"ext3.sif", IMAGE_REFUSAL_SIF_FILESYSTEM, "ext3, not SquashFS"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t size;
        AUTO_FREE uint8_t *data = read_fixture(rows[i].name, &size);
        expect_bytes(data, size, rows[i].refusal, rows[i].words);
    }
}

/* One run of bytes put over plain.sif, whose only descriptor is at 4096. */
struct damage {
    size_t at, len;
    const char *bytes;
    enum image_refusal refusal;
    const char *words;
};

static const struct damage damages[] = {
    {32, 10, "SIF_MAGIX\0", IMAGE_REFUSAL_UNKNOWN, "magic number"},
    {42, 3, "02\0", IMAGE_REFUSAL_SIF_VERSION, "other than 01 (\"02\")"},
    {88, 8, "\0\0\0\0\0\0\0\0", IMAGE_REFUSAL_SIF_OBJECTS, "room for 0 objects"},
    {88, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", IMAGE_REFUSAL_SIF_OBJECTS, "room for -1 objects"},
    {88, 8, "\x01\x10\0\0\0\0\0\0", IMAGE_REFUSAL_SIF_OBJECTS, "room for 4097 objects"},
    {88, 8, "\x00\x10\0\0\0\0\0\0", IMAGE_REFUSAL_TRUNCATED, "within its table of objects"},
    {96, 8, "\x40\0\0\0\0\0\0\0", IMAGE_REFUSAL_CORRUPT, "lies within its header"},
    {96, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", IMAGE_REFUSAL_TRUNCATED, "table"},
    {4096, 4, "\x05\x40\0\0", IMAGE_REFUSAL_SIF_NO_PRIMARY, "(1 objects) has no primary"},
    {4100, 1, "\0", IMAGE_REFUSAL_SIF_NO_PRIMARY, "(0 objects) has no primary"},
    {4096 + 17, 8, "\0\0\0\x7f\0\0\0\0", IMAGE_REFUSAL_TRUNCATED, "and the file has"},
    {4096 + 17, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f", IMAGE_REFUSAL_TRUNCATED, "and the file has"},
    {4096 + 25, 8, "\xff\xff\xff\xff\xff\xff\xff\xff", IMAGE_REFUSAL_TRUNCATED, "is -1 bytes"},
    {4096 + 25, 8, "\0\0\0\0\0\0\0\0", IMAGE_REFUSAL_CORRUPT, "is empty"},
    {4096 + 201, 4, "\x05\0\0\0", IMAGE_REFUSAL_ENCRYPTED, "encrypted"},
    {4096 + 201, 4, "\x04\0\0\0", IMAGE_REFUSAL_SIF_FILESYSTEM, "raw data, not SquashFS"},
    {4096 + 201, 4, "\xff\xff\xff\xff", IMAGE_REFUSAL_SIF_FILESYSTEM, "no known kind"},
    {4096 + 205, 4, "\x01\0\0\0", IMAGE_REFUSAL_SIF_NO_PRIMARY, "no primary system partition"},
    {4096 + 209, 3, "99\0", IMAGE_REFUSAL_ARCHITECTURE, "for unknown"},
    {32768, 4, "hsqz", IMAGE_REFUSAL_CORRUPT, "is not a SquashFS, though it says so"},
};

static void a_damaged_sif_is_refused_for_what_is_wrong_with_it(void **state)
{
    (void)state;
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        const struct damage *damage = &damages[i];
        AUTO_FREE uint8_t *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, data, size);
        memcpy(copy + damage->at, damage->bytes, damage->len);
        expect_bytes(copy, size, damage->refusal, damage->words);
    }
}

static void a_sif_cut_short_anywhere_is_truncated(void **state)
{
    (void)state;
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    const size_t lengths[] = {0, 1, 31, 127, 128, 4096, 4096 + 584, 32176, 32768, size - 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        AUTO_FREE uint8_t *copy = malloc(lengths[i] + 1); /* exactly: a read beyond it is seen */
        AUTO_FREE uint8_t *exact = realloc(take_ptr(&copy), lengths[i] ? lengths[i] : 1);
        memcpy(exact, data, lengths[i]);
        expect_bytes(exact, lengths[i], IMAGE_REFUSAL_TRUNCATED, "");
    }
}

static void two_primary_partitions_are_one_too_many(void **state)
{
    (void)state;
    size_t size;
    AUTO_FREE uint8_t *data = read_fixture("plain.sif", &size);
    memcpy(data + 4096 + SIF_DESCRIPTOR_SIZE, data + 4096, SIF_DESCRIPTOR_SIZE);
    expect_bytes(data, size, IMAGE_REFUSAL_SIF_TWO_PRIMARY, "two primary");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_of_a_sif_is_where_siftool_put_it),
        cmocka_unit_test(a_sif_without_a_root_for_this_machine_is_refused_by_name),
        cmocka_unit_test(a_damaged_sif_is_refused_for_what_is_wrong_with_it),
        cmocka_unit_test(a_sif_cut_short_anywhere_is_truncated),
        cmocka_unit_test(two_primary_partitions_are_one_too_many),
    };
    return cmocka_run_group_tests_name("image_sif", tests, NULL, NULL);
}
