/* Layers made by hand, as no sandbox packs them: what is refused, and what comes of the rest. */
#include "tests/workers/layers/layer_making.h"

#include <sys/xattr.h>

FIBER_TEST(a_layer_that_leads_out_is_refused_and_leaves_nothing)
{
    char outside[160];
    make_dir(outside, sizeof(outside), "outside");
    const struct tar_entry to_outside = {.path = "way", .link = outside, .type = '2', .mode = 0777};
    const struct tar_entry up = {.path = "way", .link = "..", .type = '2', .mode = 0777};
    const struct {
        struct tar_entry entries[2];
        size_t count;
    } cases[] = {
        {{{.path = "/etc/passwd", .type = '0', .mode = 0644}}, 1},
        {{{.path = "../x", .type = '0', .mode = 0644}}, 1},
        {{{.path = "a/../../x", .type = '0', .mode = 0644}}, 1},
        {{{.path = "a/..", .type = '5', .mode = 0755}}, 1},
        {{to_outside, {.path = "way/x", .type = '0', .mode = 0644}}, 2},
        {{to_outside, {.path = "way", .type = '5', .mode = 0755}}, 2},
        {{to_outside, {.path = "way/.wh.x", .type = '0', .mode = 0644}}, 2},
        {{up, {.path = "way/x", .type = '5', .mode = 0755}}, 2},
        {{{.path = "h", .link = "/etc/passwd", .type = '1', .mode = 0644}}, 1},
        {{{.path = "h", .link = "../../etc/passwd", .type = '1', .mode = 0644}}, 1},
        {{to_outside, {.path = "h", .link = "way/x", .type = '1', .mode = 0644}}, 2},
        {{{.path = "c", .type = '3', .mode = 0666}}, 1},
        {{{.path = "b", .type = '4', .mode = 0666}}, 1},
        {{{.path = "d", .type = '5', .mode = 0755}, {.path = "d", .type = '0', .mode = 0644}}, 2},
        {{{.path = "f", .type = '0', .mode = 0644}, {.path = "./f", .type = '0', .mode = 0600}}, 2},
        {{{.path = "f", .type = '0', .mode = 0644}, {.path = "f", .link = "x", .type = '2', .mode = 0777}}, 2},
        {{{.path = "f", .type = '0', .mode = 0644}, {.path = "f", .link = "f", .type = '1', .mode = 0644}}, 2},
        {{{.path = "f", .type = '0', .mode = 0644}, {.path = "f/g", .type = '0', .mode = 0644}}, 2},
        {{{.path = ".wh..wh.sluice.plain", .type = '0', .mode = 0644}}, 1}, /* escaped for nothing */
        {{{.path = ".wh..wh.sluice...", .type = '5', .mode = 0755}}, 1},
        {{{.path = ".wh..wh..wh.sluice...", .type = '0', .mode = 0644}}, 1},
        {{{.path = "h", .link = ".wh..wh.sluice.../f", .type = '1', .mode = 0644}}, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = NULL;
        struct fail fail = {0};
        struct layer layer = make_by_hand(cases[i].entries, cases[i].count);
        int code = layer_unpack(&layers, layer.digest, buffer_peek(&layer.inlined), &path, &fail);
        if (code != -EBADMSG)
            fail_msg("case %zu: %d %s", i, code, fail.text);
        assert_int_equal(count_entries(cache), 0);
        assert_int_equal(count_entries(outside), 0);
        layer_finish(&layer);
    }
}

FIBER_TEST(attributes_that_no_layer_has_are_refused)
{
    static const char *const names[] = {"user.overlay.redirect", "user.overlay.opaque", "trusted.overlay.opaque",
                                        "security.capability"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buffer records = {0};
        struct fail fail = {0};
        char *path = NULL;
        tar_add_attribute(&records, names[i], slice_from_str("y"));
        struct layer layer = make_by_hand(
            &(struct tar_entry){.path = "d", .type = i % 2 ? '5' : '0', .mode = 0755, .records = buffer_peek(&records)},
            1);
        int code = layer_unpack(&layers, layer.digest, buffer_peek(&layer.inlined), &path, &fail);
        if (code != -EBADMSG || !strstr(fail.text, "an attribute that no layer has"))
            fail_msg("%s: %d %s", names[i], code, fail.text);
        assert_int_equal(count_entries(cache), 0);
        buffer_finish(&records);
        layer_finish(&layer);
    }
}

FIBER_TEST(markers_that_name_nothing_are_passed_over)
{
    const struct tar_entry entries[] = {
        {.path = "d", .type = '5', .mode = 0755},
        {.path = "d/.wh.", .type = '0', .mode = 0644},
        {.path = "d/.wh..", .type = '0', .mode = 0644},
        {.path = "d/.wh...", .type = '0', .mode = 0644},
        {.path = "d/.wh..wh.plnk", .type = '0', .mode = 0644},
        {.path = ".wh..wh.plnk/1.2", .type = '0', .mode = 0644},
    };
    char dir[256];
    struct layer layer = make_by_hand(entries, 6);
    char *path = unpack(&layer);
    snprintf(dir, sizeof(dir), "%s/d", path);
    assert_int_equal(count_entries(dir), 0);
    assert_int_equal(count_entries(path), 1);
    free(path);
    layer_finish(&layer);
}

FIBER_TEST(an_opaque_root_hides_and_rights_of_other_users_are_not_given)
{
    const struct tar_entry entries[] = {
        {.path = "./", .type = '5', .mode = 0777},
        {.path = "./workspace//tool", .type = '0', .mode = 06755}, /* parents are made */
        {.path = "workspace/dir", .type = '5', .mode = 02755},
        {.path = "workspace/dir/.wh..wh..opq", .type = '0', .mode = 0644},
    };
    char name[256];
    struct stat it;
    char value = 0;
    struct layer layer = make_by_hand(entries, 4);
    char *path = unpack(&layer);
    snprintf(name, sizeof(name), "%s/workspace/tool", path);
    assert_int_equal(stat(name, &it), 0);
    assert_int_equal(it.st_mode & 07777, 0755);
    assert_int_equal(it.st_uid, geteuid());
    snprintf(name, sizeof(name), "%s/workspace/dir", path);
    assert_int_equal(stat(name, &it), 0);
    assert_int_equal(it.st_mode & 07777, 0755);
    assert_int_equal(getxattr(name, "user.overlay.opaque", &value, 1), 1);
    assert_int_equal(value, 'y');
    assert_int_equal(stat(path, &it), 0);
    assert_int_equal(it.st_mode & 07777, 0700); /* the node's other users see nothing */
    free(path);
    layer_finish(&layer);
}

FIBER_TEST(bytes_that_are_no_whole_frame_or_no_tar_are_refused)
{
    struct layer layer = make_by_hand(&(struct tar_entry){.path = "f", .type = '0', .mode = 0644}, 1);
    struct buffer longer = {0};
    buffer_append(&longer, layer.inlined.data, layer.inlined.len);
    buffer_append_str(&longer, "more");
    const struct slice cases[] = {
        slice_of(layer.inlined.data, layer.inlined.len - 1),
        slice_of(layer.inlined.data, 3),
        buffer_peek(&longer),
        slice_from_str("this is neither LZ4 nor a tar"),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char digest[DIGEST_SIZE], *path = NULL;
        struct fail fail = {0};
        assert_true(digest_of(cases[i], digest));
        int code = layer_unpack(&layers, digest, cases[i], &path, &fail);
        if (code != -EBADMSG)
            fail_msg("case %zu: %d %s", i, code, fail.text);
        free(path);
    }
    buffer_finish(&longer);
    layer_finish(&layer);
}

static void a_frame_that_grows_without_bound_is_cut_off(void **state)
{
    (void)state;
    struct fail fail = {0};
    atomic_bool stop = false;
    char path[160];
    snprintf(path, sizeof(path), "%s/XXXXXX", directory);
    int zeros = memfd_create("zeros", MFD_CLOEXEC);
    assert_int_equal(ftruncate(zeros, 16 << 20), 0);
    struct lz4_pack frame = {.tar = zeros, .inline_max = 1 << 20, .path = path};
    assert_int_equal(lz4_pack(&frame, &stop, &fail), 0);
    assert_true(frame.out.len < 100000);
    struct lz4_reader *reader = lz4_open(-1, buffer_peek(&frame.out), 1 << 20);
    struct slice piece;
    uint64_t total = 0;
    int code;
    while ((code = lz4_read(reader, &piece, &fail)) == 0 && piece.len)
        total += piece.len;
    assert_int_equal(code, -EFBIG);
    assert_true(total <= 1 << 20);
    lz4_close(&reader);
    buffer_finish(&frame.out);
    close(zeros);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        LAYER_TEST(a_layer_that_leads_out_is_refused_and_leaves_nothing),
        LAYER_TEST(attributes_that_no_layer_has_are_refused),
        LAYER_TEST(markers_that_name_nothing_are_passed_over),
        LAYER_TEST(an_opaque_root_hides_and_rights_of_other_users_are_not_given),
        LAYER_TEST(bytes_that_are_no_whole_frame_or_no_tar_are_refused),
        LAYER_TEST(a_frame_that_grows_without_bound_is_cut_off),
    };
    return cmocka_run_group_tests_name("layer_unpack", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
