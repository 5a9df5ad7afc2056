/* OCI image layouts: layers put over each other, what is chosen, what is refused. */
#include "tests/workers/images/oci_fixture.h"
#include "common/files/dirtree_remove.h"

static const char *unpack_good(const char *image, const char *name)
{
    struct image_trouble trouble = {0};
    struct rootfs_counts counts;
    if (unpack_into(image, name, &wide, &counts, &trouble) < 0)
        fail_msg("%s: %s", image, trouble.fail.text);
    return in_directory(name);
}

static void expect_bad(const char *image, enum image_refusal refusal, const char *words)
{
    struct image_trouble trouble = {0};
    struct rootfs_counts counts;
    assert_int_equal(unpack_into(image, "bad", &wide, &counts, &trouble), -EBADMSG);
    expect_refusal(&trouble, refusal, words);
    assert_false(is_there(in_directory("bad")));
}

static const struct tar_item base[] = {
    {"./", S_IFDIR},
    {"usr/", S_IFDIR},
    {"usr/lib/", S_IFDIR},
    {"usr/lib/a", S_IFREG, "a of below"},
    {"lib", S_IFLNK, "usr/lib"},
    {"d/", S_IFDIR},
    {"d/gone", S_IFREG, "gone"},
    {"d/kept", S_IFREG, "kept"},
    {"o/", S_IFDIR},
    {"o/old", S_IFREG, "old"},
    {"o/sub/deep", S_IFREG, "deep"},
    {"f", S_IFREG, "a file"},
    {"tree/x/y", S_IFREG, "y"},
    {"link", S_IFREG, "d/kept", true},
    {0},
};

static void layers_of_every_packing_lie_over_each_other(void **state)
{
    (void)state;
    static const struct tar_item second[] = {
        {"d/.wh.gone", S_IFREG},
        {"o/new", S_IFREG, "new"},
        {"o/sub/new", S_IFREG, "new, too"},
        {"o/.wh..wh..opq", S_IFREG}, /* late: what this layer brought stays */
        {"f/", S_IFDIR},
        {"f/in", S_IFREG, "in"},
        {"tree", S_IFREG, "a file now"},
        {"lib/b", S_IFREG, "through the symlink"},
        {"null", S_IFCHR},
        {0},
    };
    static const struct tar_item third[] = {{"d/.wh.never", S_IFREG}, {"usr/lib/a", S_IFREG, "a"}, {0}};
    make_layout("image");
    const enum packing packings[] = {GZIP, ZSTD, PLAIN};
    struct blob blobs[] = {put_layer("image", GZIP, base), put_layer("image", ZSTD, second),
                           put_layer("image", PLAIN, third)};
    struct indexed one = {.blob = put_manifest("image", blobs, packings, 3, NULL)};
    put_index("image", &one, 1);
    unpack_good(in_directory("image"), "out");
    expect_file(in_directory("out/d/kept"), "kept");
    expect_file(in_directory("out/link"), "kept");
    assert_false(is_there(in_directory("out/d/gone")));
    assert_false(is_there(in_directory("out/o/old")));
    assert_false(is_there(in_directory("out/o/sub/deep")));
    expect_file(in_directory("out/o/new"), "new");
    expect_file(in_directory("out/o/sub/new"), "new, too");
    expect_file(in_directory("out/f/in"), "in");
    expect_file(in_directory("out/tree"), "a file now");
    expect_file(in_directory("out/usr/lib/a"), "a");
    expect_file(in_directory("out/usr/lib/b"), "through the symlink");
    assert_false(is_there(in_directory("out/null")));
    assert_false(is_there(in_directory("out/d/.wh.never")));
    assert_int_equal(stat_of(in_directory("out/f/in")).st_uid, geteuid());
    assert_int_equal(stat_of(in_directory("out/f/in")).st_mtime, 1000000000);
}

static void names_in_any_language_come_out_as_they_are(void **state)
{
    (void)state;
    static const struct tar_item items[] = {{"h\u00e9 \u4e2d", S_IFREG, "1"}, {0}};
    const struct tar_item *const layers[] = {items};
    unpack_good(make_image("image", layers, 1), "out");
    expect_file(in_directory("out/h\u00e9 \u4e2d"), "1");
}

/* What a layer may hold to get out of its directory. */
static const struct tar_item escapes[][3] = {
    {{"../x", S_IFREG, "x"}},
    {{"a/../../x", S_IFREG, "x"}},
    {{"/etc/x", S_IFREG, "x"}},
    {{"a/../.wh.x", S_IFREG}},
    {{"h", S_IFREG, "../../etc/passwd", true}},
    {{"h", S_IFREG, "/etc/passwd", true}},
    {{"h", S_IFREG, "not/there", true}},
    {{"way", S_IFLNK, "nowhere/at/all"}, {"way/x", S_IFREG, "x"}},
    {{"way", S_IFLNK, "way"}, {"way/x", S_IFREG, "x"}},
};

static void a_layer_that_leads_out_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++) {
        char name[32];
        struct tar_item items[4] = {escapes[i][0], escapes[i][1], escapes[i][2], {0}};
        const struct tar_item *const layers[] = {items};
        snprintf(name, sizeof(name), "image%zu", i);
        expect_bad(make_image(name, layers, 1), IMAGE_REFUSAL_OCI_LAYER, "holds");
    }
}

static char name_of_256[257], marker_of_256[257], link_of_5000[5001];

/* What no file system takes is the image's doing, not this node's. */
static void a_name_that_is_too_long_is_refused_by_name(void **state)
{
    (void)state;
    memset(name_of_256, 'n', 256);
    memset(link_of_5000, 'l', 5000);
    memcpy(memset(marker_of_256, 'n', 256), ".wh.", 4);
    char below[300];
    snprintf(below, sizeof(below), "a/%s/b", name_of_256);
    const struct tar_item odd[] = {
        {name_of_256, S_IFREG, "x"}, {name_of_256, S_IFDIR, NULL},    {name_of_256, S_IFLNK, "x"},
        {below, S_IFREG, "x"},       {"link", S_IFLNK, link_of_5000},
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        char name[32];
        struct tar_item items[] = {{"fine", S_IFREG, "x"}, odd[i], {0}};
        const struct tar_item *const layers[] = {items};
        snprintf(name, sizeof(name), "image%zu", i);
        expect_bad(make_image(name, layers, 1), IMAGE_REFUSAL_TOO_LARGE, "longer than a file system takes");
    }
    const struct tar_item marker[] = {{marker_of_256, S_IFREG, NULL}, {0}};
    const struct tar_item *const layers[] = {marker};
    unpack_good(make_image("marker", layers, 1), "out"); /* removes what cannot be there */
}

/* A header as ustar has it; sizes beyond eleven octal digits as GNU says them. */
static void put_header(unsigned char *header, const char *name, char type, uint64_t size)
{
    unsigned sum = 0;
    strcpy(memset(header, 0, 512), name);
    memcpy(header + 100, "0000644", 8);
    memcpy(header + 136, "00000000000", 12);
    memcpy(header + 257, "ustar\00000", 8);
    header[156] = (unsigned char)type;
    header[124] = 0x80;
    for (int i = 0; i < 8; i++)
        header[128 + i] = (unsigned char)(size >> (56 - 8 * i));
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
}

/* As an entry of so many bytes; and as a hole of them but for the last byte, of which the layer need not hold more. */
static void an_entry_of_an_exbibyte_is_refused_by_name(void **state)
{
    (void)state;
    static const char records[] = "39 GNU.sparse.size=1152921504606846976\n26 GNU.sparse.numblocks=1\n"
                                  "41 GNU.sparse.offset=1152921504606846975\n25 GNU.sparse.numbytes=1\n";
    static unsigned char bytes[6 * 512];
    const enum packing plain = PLAIN;
    for (int is_hole = 0; is_hole < 2; is_hole++) {
        const char *name = is_hole ? "hole" : "plain";
        memset(bytes, 0, sizeof(bytes));
        if (is_hole) {
            put_header(bytes, "pax", 'x', strlen(records));
            memcpy(bytes + 512, records, strlen(records));
        }
        put_header(bytes + (is_hole ? 1024 : 0), "vast", '0', is_hole ? 1 : UINT64_C(1) << 60);
        make_layout(name);
        struct blob layer = put_blob(name, bytes, sizeof(bytes));
        struct indexed one = {.blob = put_manifest(name, &layer, &plain, 1, NULL)};
        put_index(name, &one, 1);
        expect_bad(in_directory(name), IMAGE_REFUSAL_TOO_LARGE, "it holds vast of 1152921504606846976 bytes");
    }
}

/* An absolute symlink, or one with "..", is one within the image: its root is "/" there. */
static void symlinks_never_lead_out(void **state)
{
    (void)state;
    char text[80];
    write_image("outside", "here before", 11);
    snprintf(text, sizeof(text), "..%s", directory);
    struct tar_item first[] = {{"up", S_IFLNK, ".."},  {"abs", S_IFLNK, directory}, {"far", S_IFLNK, text},
                               {"root", S_IFLNK, "/"}, {directory + 1, S_IFDIR, 0}, {0}};
    static const struct tar_item second[] = {{"up/outside", S_IFREG, "1"},
                                             {"abs/outside", S_IFREG, "2"},
                                             {"root/inside", S_IFREG, "3"},
                                             {"far/.wh.outside", S_IFREG},
                                             {0}};
    const struct tar_item *const layers[] = {first, second};
    unpack_good(make_image("image", layers, 2), "out");
    expect_file(in_directory("outside"), "here before");
    expect_file(in_directory("out/outside"), "1");
    expect_file(in_directory("out/inside"), "3");
}

static void a_blob_that_is_not_what_its_digest_says_is_refused(void **state)
{
    (void)state;
    const struct tar_item *const layers[] = {base};
    char path[320];
    const char *image = make_image("image", layers, 1);
    struct blob layer = put_layer("image", PLAIN, base);
    snprintf(path, sizeof(path), "image/blobs/sha256/%s", layer.digest + 7);
    AUTO_FREE char *zeros = calloc(1, layer.size);
    write_image(path, zeros, layer.size);
    expect_bad(image, IMAGE_REFUSAL_OCI_BLOB, "is damaged: it is sha256:");
    write_image(path, zeros, layer.size - 1);
    expect_bad(image, IMAGE_REFUSAL_OCI_BLOB, "bytes long, not the");
    assert_int_equal(unlink(in_directory(path)), 0);
    expect_bad(image, IMAGE_REFUSAL_OCI_BLOB, "there is no blob");
}

/* The tar's end comes before the damage, so only reading on finds it. */
static void damage_behind_the_end_of_a_tar_counts_too(void **state)
{
    (void)state;
    static const enum packing plain = PLAIN;
    static char bytes[1 << 16];
    char path[320];
    memset(bytes, 0, sizeof(bytes));
    make_layout("image");
    struct blob small = put_layer("image", PLAIN, (const struct tar_item[]){{"f", S_IFREG, "f"}, {0}});
    snprintf(path, sizeof(path), "%s/image/blobs/sha256/%s", directory, small.digest + 7);
    AUTO_FCLOSE FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, small.size, file), small.size);
    struct blob layer = put_blob("image", bytes, sizeof(bytes));
    struct indexed one = {.blob = put_manifest("image", &layer, &plain, 1, NULL)};
    put_index("image", &one, 1);
    unpack_good(in_directory("image"), "good");
    bytes[sizeof(bytes) - 1] = 'x';
    snprintf(path, sizeof(path), "image/blobs/sha256/%s", layer.digest + 7);
    write_image(path, bytes, sizeof(bytes));
    expect_bad(in_directory("image"), IMAGE_REFUSAL_OCI_BLOB, "is damaged");
}

static void the_image_for_this_machine_is_chosen_or_the_one_that_is_named(void **state)
{
    (void)state;
    static const enum packing plain = PLAIN;
    make_layout("image");
    struct indexed many[3];
    const char *const texts[] = {"0", "1", "2"};
    const char *const tags[] = {"one", "two", "two"};
    const char *const for_whom[] = {NULL, "s390x", image_architecture()};
    for (size_t i = 0; i < 3; i++) {
        const struct tar_item items[] = {{"which", S_IFREG, texts[i]}, {0}};
        struct blob layer = put_layer("image", PLAIN, items);
        many[i] = (struct indexed){put_manifest("image", &layer, &plain, 1, for_whom[i]), tags[i], for_whom[i]};
    }
    put_index("image", many, 3);
    unpack_good(in_directory("image:one"), "one");
    expect_file(in_directory("one/which"), "0");
    unpack_good(in_directory("image:two"), "two");
    expect_file(in_directory("two/which"), "2");
    expect_bad(in_directory("image:three"), IMAGE_REFUSAL_OCI_CHOICE,
               "holds no image \"three\"; it holds: one, two, two");
    expect_bad(in_directory("image"), IMAGE_REFUSAL_OCI_CHOICE,
               "holds 2 images: say which, as DIR:NAME, of: one, two, two");
    put_index("image", many + 1, 1);
    expect_bad(in_directory("image"), IMAGE_REFUSAL_ARCHITECTURE, "no image for linux/");
    many[1].architecture = NULL; /* the index does not say, the config does */
    put_index("image", many + 1, 1);
    expect_bad(in_directory("image"), IMAGE_REFUSAL_ARCHITECTURE, "is for linux/s390x");
}

static void documents_that_are_not_what_they_should_be_are_refused(void **state)
{
    (void)state;
    const struct tar_item *const layers[] = {base};
    const char *image = make_image("image", layers, 1);
    const struct {
        const char *file, *text;
        enum image_refusal refusal;
        const char *words;
    } rows[] = {
        {"oci-layout", "{\"imageLayoutVersion\":\"2.0.0\"}", IMAGE_REFUSAL_OCI_LAYOUT, "\"2.0.0\""},
        {"oci-layout", "[]", IMAGE_REFUSAL_OCI_DOCUMENT, "oci-layout is not a JSON object"},
        {"oci-layout", "", IMAGE_REFUSAL_OCI_DOCUMENT, "oci-layout is not a JSON object"},
        {"index.json", "{", IMAGE_REFUSAL_OCI_DOCUMENT, "index.json is not a JSON object"},
        {"index.json", "{}", IMAGE_REFUSAL_ARCHITECTURE, "no image for linux/"},
        {"index.json",
         "{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
         "\"digest\":\"sha256:../../../etc/passwd\",\"size\":10}]}",
         IMAGE_REFUSAL_OCI_DOCUMENT, "no valid digest"},
        {"index.json",
         "{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
         "\"digest\":\"md5:abc\",\"size\":10}]}",
         IMAGE_REFUSAL_OCI_DOCUMENT, "another digest than sha256"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char path[320];
        if (i == 3) {
            snprintf(path, sizeof(path), "image/oci-layout");
            write_image(path, "{\"imageLayoutVersion\":\"1.0.0\"}", 30);
        }
        snprintf(path, sizeof(path), "image/%s", rows[i].file);
        write_image(path, rows[i].text, strlen(rows[i].text));
        expect_bad(image, rows[i].refusal, rows[i].words);
    }
    assert_int_equal(unlink(in_directory("image/index.json")), 0);
    expect_bad(image, IMAGE_REFUSAL_OCI_LAYOUT, "cannot read the OCI layout's index.json");
}

static void a_layer_that_unpacks_to_other_than_the_config_says_is_refused(void **state)
{
    (void)state;
    const enum packing packings[] = {GZIP, ZSTD, PLAIN};
    for (size_t i = 0; i < 3; i++) {
        char name[32], path[64];
        snprintf(name, sizeof(name), "image%zu", i);
        snprintf(path, sizeof(path), "out%zu", i);
        make_layout(name);
        struct blob layer = put_layer(name, packings[i], base);
        struct indexed one = {.blob = put_manifest(name, &layer, &packings[i], 1, NULL)};
        put_index(name, &one, 1);
        unpack_good(in_directory(name), path);
        snprintf(layer.diff_id, sizeof(layer.diff_id), "sha256:%064d", 7);
        one.blob = put_manifest(name, &layer, &packings[i], 1, NULL);
        put_index(name, &one, 1);
        expect_bad(in_directory(name), IMAGE_REFUSAL_OCI_BLOB, "but the image's config says sha256:0000000000");
        snprintf(layer.diff_id, sizeof(layer.diff_id), "sha512:%064d", 7);
        one.blob = put_manifest(name, &layer, &packings[i], 1, NULL);
        put_index(name, &one, 1);
        expect_bad(in_directory(name), IMAGE_REFUSAL_OCI_DOCUMENT, "other than a sha256 digest");
    }
}

/* Behind its tar comes what no file is made of, a thousand times smaller when packed. */
static void a_layer_that_goes_on_and_on_is_refused(void **state)
{
    (void)state;
    static char zeros[4 << 20], packed[1 << 20];
    const struct tar_item items[] = {{"f", S_IFREG, "f"}, {0}};
    const enum packing gzip = GZIP;
    const struct rootfs_limits narrow = {1 << 20, 2};
    struct image_trouble trouble = {0};
    struct rootfs_counts counts;
    size_t size = 0;
    struct archive *archive = archive_write_new();
    struct archive_entry *whole = archive_entry_new();
    make_tar(zeros, sizeof(zeros), PLAIN, items);
    archive_entry_set_filetype(whole, S_IFREG);
    assert_int_equal(archive_write_set_format_raw(archive), ARCHIVE_OK);
    assert_int_equal(archive_write_add_filter_gzip(archive), ARCHIVE_OK);
    assert_int_equal(archive_write_open_memory(archive, packed, sizeof(packed), &size), ARCHIVE_OK);
    assert_int_equal(archive_write_header(archive, whole), ARCHIVE_OK);
    assert_int_equal(archive_write_data(archive, zeros, sizeof(zeros)), (ssize_t)sizeof(zeros));
    assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
    archive_entry_free(whole);
    archive_write_free(archive);
    make_layout("image");
    struct blob layer = put_blob("image", packed, size);
    assert_true(digest_of(slice_of(zeros, sizeof(zeros)), layer.diff_id));
    struct indexed one = {.blob = put_manifest("image", &layer, &gzip, 1, NULL)};
    put_index("image", &one, 1);
    unpack_good(in_directory("image"), "good");
    assert_int_equal(unpack_into(in_directory("image"), "out", &narrow, &counts, &trouble), -EBADMSG);
    expect_refusal(&trouble, IMAGE_REFUSAL_TOO_LARGE, "unpacks to more than 1048576 bytes");
}

/* ---- a tar of a layout ------------------------------------------------------------------------------------ */

static void a_tar_of_a_layout_is_read_as_the_layout_is(void **state)
{
    (void)state;
    const enum packing packings[] = {GZIP, ZSTD};
    static const struct tar_item second[] = {{"d/.wh.gone", S_IFREG}, {"new", S_IFREG, "new"}, {0}};
    make_layout("image");
    struct blob blobs[] = {put_layer("image", GZIP, base), put_layer("image", ZSTD, second)};
    struct indexed one = {.blob = put_manifest("image", blobs, packings, 2, NULL), .tag = "it"};
    put_index("image", &one, 1);
    struct image as_directory, as_tar;
    struct image_trouble trouble = {0};
    const char *tar = put_archive("image", "image.tar");
    assert_int_equal(image_open(in_directory("image"), &as_directory, &trouble), 0);
    assert_int_equal(image_open(tar, &as_tar, &trouble), 0);
    assert_string_equal(as_tar.key, as_directory.key); /* prepared once */
    image_close(&as_directory);
    image_close(&as_tar);
    unpack_good(tar, "out");
    expect_file(in_directory("out/d/kept"), "kept");
    expect_file(in_directory("out/new"), "new");
    assert_false(is_there(in_directory("out/d/gone")));
    unpack_good(in_directory("image.tar:it"), "named");
    expect_file(in_directory("named/new"), "new");
    expect_bad(in_directory("image.tar:other"), IMAGE_REFUSAL_OCI_CHOICE, "holds no image \"other\"");
}

static void a_damaged_tar_of_a_layout_is_refused_wherever_it_ends(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    const struct tar_item *const layers[] = {base};
    make_image("image", layers, 1);
    const char *tar = put_archive("image", "image.tar");
    AUTO_FCLOSE FILE *file = fopen(tar, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    assert_true(size > 4096 && size < sizeof(bytes));
    for (size_t end = 512; end < size; end += 512) {
        struct image_trouble trouble = {0};
        struct rootfs_counts counts;
        int code = unpack_into(write_image("cut.tar", bytes, end), "cut", &wide, &counts, &trouble);
        if (code == 0)
            assert_int_equal(dirtree_remove(in_directory("cut")), 0); /* only zeros were missing */
        else if (code != -EBADMSG || trouble.refusal == IMAGE_REFUSAL_NONE)
            fail_msg("cut at %zu: %d, %s", end, code, trouble.fail.text);
    }
    for (size_t at = 512; at < size; at += 509) { /* no byte of it makes it another image */
        struct image_trouble trouble = {0};
        struct rootfs_counts counts;
        bytes[at] ^= 0x55;
        if (unpack_into(write_image("bad.tar", bytes, size), "bad", &wide, &counts, &trouble) == 0) {
            expect_file(in_directory("bad/d/kept"), "kept");
            assert_int_equal(dirtree_remove(in_directory("bad")), 0);
        }
        bytes[at] ^= 0x55;
    }
}

static void a_tar_of_something_else_is_refused_with_what_to_do(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    static const struct tar_item root[] = {{"bin/", S_IFDIR}, {"bin/sh", S_IFREG, "sh"}, {0}};
    static const struct tar_item old[] = {{"manifest.json", S_IFREG, "[]"}, {0}};
    static const struct tar_item linked[] = {
        {"oci-layout", S_IFLNK, "/etc/passwd"}, {"index.json", S_IFREG, "../x", true}, {0}};
    size_t size = make_tar(bytes, sizeof(bytes), PLAIN, root);
    expect_bad(write_image("root.tar", bytes, size), IMAGE_REFUSAL_OCI_LAYOUT, "unpack it, and name the directory");
    size = make_tar(bytes, sizeof(bytes), PLAIN, old);
    expect_bad(write_image("old.tar", bytes, size), IMAGE_REFUSAL_OCI_LAYOUT, "skopeo copy docker-archive:FILE.tar");
    size = make_tar(bytes, sizeof(bytes), PLAIN, linked);
    expect_bad(write_image("linked.tar", bytes, size), IMAGE_REFUSAL_OCI_LAYOUT, "holds no OCI layout");
    size = make_tar(bytes, sizeof(bytes), GZIP, root);
    expect_bad(write_image("packed.tar.gz", bytes, size), IMAGE_REFUSAL_UNKNOWN, "decompress it first");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_images, tear_down_images)
    const struct CMUnitTest tests[] = {
        TEST(layers_of_every_packing_lie_over_each_other),
        TEST(names_in_any_language_come_out_as_they_are),
        TEST(a_layer_that_leads_out_is_refused_and_leaves_nothing),
        TEST(a_name_that_is_too_long_is_refused_by_name),
        TEST(an_entry_of_an_exbibyte_is_refused_by_name),
        TEST(symlinks_never_lead_out),
        TEST(a_blob_that_is_not_what_its_digest_says_is_refused),
        TEST(damage_behind_the_end_of_a_tar_counts_too),
        TEST(the_image_for_this_machine_is_chosen_or_the_one_that_is_named),
        TEST(documents_that_are_not_what_they_should_be_are_refused),
        TEST(a_layer_that_unpacks_to_other_than_the_config_says_is_refused),
        TEST(a_layer_that_goes_on_and_on_is_refused),
        TEST(a_tar_of_a_layout_is_read_as_the_layout_is),
        TEST(a_damaged_tar_of_a_layout_is_refused_wherever_it_ends),
        TEST(a_tar_of_something_else_is_refused_with_what_to_do),
    };
    return cmocka_run_group_tests_name("image_oci", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
