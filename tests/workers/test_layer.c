/* Layers: what a sandbox wrote, packed, named, kept, unpacked and seen again by another. */
#include "tests/workers/layers_world.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/digest.h"
#include "workers/layer_cache.h"
#include "workers/layer_dir.h"
#include "workers/layer_frame.h"
#include "workers/sandbox/tar.h"
#include "workers/tree.h"

static int set_up_layers(void **state) { return make_layers(set_up(state)); }

static int tear_down_layers(void **state)
{
    assert_int_equal(tree_remove(cache), 0); /* also what nobody may enter */
    return tear_down(state);
}

/* ---- layers made by sandboxes --------------------------------------------------------------- */

static struct layer pack(struct sandbox *sandbox)
{
    struct layer layer = {0};
    struct fail fail = {0};
    if (layer_pack(&layers, sandbox, &layer, &fail) < 0)
        fail_msg("layer_pack: %s", fail.text);
    return layer;
}

static char *unpack(const struct layer *layer)
{
    char *path = NULL;
    struct fail fail = {0};
    if (layer_unpack(&layers, layer->digest, buffer_peek(&layer->inlined), &path, &fail) < 0)
        fail_msg("layer_unpack: %s", fail.text);
    return path;
}

static struct sandbox *open_on(const char *lower, const char *upper)
{
    const char *paths[] = {lower, upper};
    struct sandbox_plan plan = host_plan();
    plan.layers = paths;
    plan.layer_count = upper ? 2 : 1;
    return open_sandbox(&plan);
}

/* Runs a command on the layers `lower` and `upper` (may be NULL) and packs what it wrote. */
static struct layer make_layer(const char *lower, const char *command)
{
    struct sandbox *sandbox = lower ? open_on(lower, NULL) : open_host();
    expect_status(sandbox, command, 0);
    struct layer layer = pack(sandbox);
    sandbox_close(&sandbox);
    return layer;
}

FIBER_TEST(files_links_modes_and_times_come_back_as_they_were)
{
    struct layer layer = make_layer(
        NULL,
        "set -e; umask 022; echo hello > a; chmod 750 a; ln a b; ln -s /usr/bin/env c; mkdir -p d/e;"
        "touch -d @1000000000.5 a; echo x > $'na\\xffme'; echo y > 'h\u00e9 \u4e2d'; mkfifo q;"
        "truncate -s 32M sparse; printf end >> sparse; mkdir shut; echo in > shut/f; chmod 0 shut;"
        "echo s > none; chmod 0 none; touch -d @1234567890 d; echo t > /tmp/t; chmod 1777 d/e");
    char *path = unpack(&layer);
    struct sandbox *sandbox = open_on(path, NULL);
    expect_text(sandbox, "cat a b; stat -c '%a %h %Y' a; readlink c; cat /tmp/t",
                "hello\nhello\n750 2 1000000000\n/usr/bin/env\nt\n");
    expect_text(sandbox, "cat $'na\\xffme' 'h\u00e9 \u4e2d'", "x\ny\n");
    expect_text(
        sandbox,
        "stat -c '%s %b' sparse | (read s b; echo $s; test $b -lt 4096 && tail -c 3 sparse)",
        "33554435\nend");
    expect_text(sandbox, "stat -c '%a %Y' d; stat -c %a shut none d/e; test a -ef b && echo same",
                "755 1234567890\n0\n0\n1777\nsame\n");
    expect_text(sandbox, "chmod 700 shut; cat shut/f; chmod 600 none; cat none; stat -c %u:%g a",
                "in\ns\n1000:1000\n");
    sandbox_close(&sandbox);
    free(path);
    layer_finish(&layer);
}

FIBER_TEST(what_was_removed_or_replaced_below_stays_so)
{
    struct layer first =
        make_layer(NULL, "mkdir -p d o/sub r; touch d/gone d/kept o/old o/sub/deep r/x f");
    char *lower = unpack(&first);
    struct layer second = make_layer(
        lower,
        "set -e; rm d/gone; rm -r o; mkdir o; touch o/new; rm -r r; echo file > r; rm f; mkdir f; touch f/in");
    char *upper = unpack(&second);
    struct sandbox *sandbox = open_on(lower, upper);
    expect_text(sandbox, "find . -type f -o -type c | sort; cat r",
                "./d/kept\n./f/in\n./o/new\n./r\nfile\n");
    sandbox_close(&sandbox);
    struct layer third = make_layer(upper, "test ! -e d/kept && touch d/again");
    layer_finish(&third);
    layer_finish(&second);
    layer_finish(&first);
    free(lower);
    free(upper);
}

FIBER_TEST(names_attributes_and_what_is_left_out_are_as_they_were)
{
    struct layer first = make_layer(NULL, "mkdir d; echo low > d/p; echo low > .wh.low; echo a > d/q");
    char *lower = unpack(&first);
    struct layer second = make_layer(
        lower,
        "set -e; mkdir .wh.d; echo in > .wh.d/.wh.f; rm .wh.low d/p; mkfifo d/p; touch d/f;"
        "python3 -c 'import os; os.setxattr(\"d/f\", \"user.note\", b\"a\\0\\nb\");"
        "os.setxattr(\"d\", \"user.of.d\", b\"\"); os.setxattr(\"d/q\", \"user.q\", b\"q\" * 1000)'");
    char *upper = unpack(&second);
    struct sandbox *sandbox = open_on(lower, upper);
    expect_text(sandbox, "cat .wh.d/.wh.f; ls -A . d",
                "in\n.:\n.wh.d\nd\n\nd:\nf\nq\n");
    expect_text(sandbox,
                "python3 -c 'import os; print(os.getxattr(\"d/f\", \"user.note\"), os.listxattr(\"d\"),"
                " len(os.getxattr(\"d/q\", \"user.q\")))'",
                "b'a\\x00\\nb' ['user.of.d'] 1000\n");
    sandbox_close(&sandbox);
    free(lower);
    free(upper);
    layer_finish(&first);
    layer_finish(&second);
}

FIBER_TEST(nothing_written_is_no_layer)
{
    struct layer layer = make_layer(NULL, "cat /usr/bin/env > /dev/null; echo x > /dev/shm/x");
    assert_string_equal(layer.digest, "");
    assert_int_equal(layer.inlined.len, 0);
    layer_finish(&layer);
}

FIBER_TEST(a_small_layer_is_inline_and_a_large_one_in_the_store)
{
    char stored[256];
    struct stat it;
    struct layer small = make_layer(NULL, "echo small > f");
    assert_true(small.inlined.len > 0 && small.inlined.len <= LAYER_INLINE_MAX);
    struct layer large = make_layer(NULL, "head -c 300000 /dev/urandom > f; cksum < f > sum");
    assert_int_equal(large.inlined.len, 0);
    snprintf(stored, sizeof(stored), "%s/%.2s/%s.tar.lz4", store, large.digest + 7,
             large.digest + 7);
    assert_int_equal(stat(stored, &it), 0);
    assert_int_equal(it.st_mode & 0222, 0);
    char *path = unpack(&large);
    struct sandbox *sandbox = open_on(path, NULL);
    expect_text(sandbox, "cksum < f | cmp - sum && echo same", "same\n");
    sandbox_close(&sandbox);
    free(path);
    layer_finish(&small);
    layer_finish(&large);
}

/* Without the cache's own ".usage" and ".trim". */
static size_t count_entries(const char *path)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *stream = opendir(path);
    assert_non_null(stream);
    while ((entry = readdir(stream)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 strcmp(entry->d_name, ".usage") != 0 && strcmp(entry->d_name, ".trim") != 0;
    closedir(stream);
    return count;
}

/* While the sandbox still packs: it is not left waiting, and packs again. */
FIBER_TEST(a_store_that_takes_nothing_is_the_reason_given)
{
    struct sandbox *sandbox = open_host();
    struct layers nowhere = {.store = "/nonexistent", .cache = cache};
    struct layer layer = {0};
    struct fail fail = {0};
    expect_status(sandbox, "head -c 4M /dev/urandom > large", 0);
    assert_int_equal(layer_pack(&nowhere, sandbox, &layer, &fail), -ENOENT);
    assert_non_null(strstr(fail.text, "cannot make /nonexistent/"));
    assert_int_equal(layer.fault, FAULT_STORE);
    layer = pack(sandbox);
    assert_true(layer.digest[0] && layer.inlined.len == 0);
    layer_finish(&layer);
    sandbox_close(&sandbox);
}

FIBER_TEST(files_that_cannot_be_packed_are_the_reason_given_and_leave_nothing)
{
    struct sandbox *sandbox = open_host();
    struct layer layer = {0};
    struct fail fail = {0};
    expect_status(sandbox, "head -c 4M /dev/urandom > a; mkdir z; cd z; perl -e 'for (1..300) { mkdir q(d); chdir q(d) }'", 0);
    assert_int_equal(layer_pack(&layers, sandbox, &layer, &fail), -ENAMETOOLONG);
    assert_string_equal(fail.text, "directories more than 256 deep");
    assert_int_equal(layer.fault, FAULT_NODE);
    assert_int_equal(count_entries(store), 0);
    assert_int_equal(count_entries(cache), 0);
    assert_null(layer.inlined.data);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_layer_that_is_damaged_or_absent_is_refused_by_name)
{
    char stored[256], *path = NULL;
    struct fail fail = {0};
    struct layer small = make_layer(NULL, "echo small > f"),
                 large = make_layer(NULL, "head -c 300000 /dev/urandom > f");
    assert_int_equal(layer_unpack(&layers, small.digest, slice_of(NULL, 0), &path, &fail), -ENOENT);
    small.inlined.data[small.inlined.len / 2] ^= 1;
    assert_int_equal(layer_unpack(&layers, small.digest, buffer_peek(&small.inlined), &path, &fail),
                     -EBADMSG);
    struct layer other = make_layer(NULL, "echo other > f"); /* whole, but not what was named */
    assert_int_equal(layer_unpack(&layers, small.digest, buffer_peek(&other.inlined), &path, &fail),
                     -EBADMSG);
    layer_finish(&other);
    snprintf(stored, sizeof(stored), "%s/%.2s/%s.tar.lz4", store, large.digest + 7,
             large.digest + 7);
    assert_int_equal(chmod(stored, 0644), 0);
    assert_int_equal(truncate(stored, 1000), 0);
    assert_int_equal(layer_unpack(&layers, large.digest, slice_of(NULL, 0), &path, &fail),
                     -EBADMSG);
    assert_int_equal(layer_unpack(&layers, "sha256:../../etc", slice_of(NULL, 0), &path, &fail),
                     -EINVAL);
    assert_null(path);
    layer_finish(&small);
    layer_finish(&large);
}

/* ---- layers made by hand ----------------------------------------------------------------------
 */

static struct layer make_by_hand(const struct tar_entry *entries, size_t count)
{
    struct layer layer = {0};
    struct fail fail = {0};
    atomic_bool stop = false;
    char path[160];
    int fd = memfd_create("tar", MFD_CLOEXEC);
    struct tar tar = {.fd = fd};
    for (size_t i = 0; i < count; i++)
        tar_put(&tar, &entries[i]);
    assert_int_equal(tar_end(&tar), 0);
    snprintf(path, sizeof(path), "%s/XXXXXX", directory);
    struct frame_pack frame = {.tar = fd, .inline_max = 8 << 20, .path = path};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(frame_pack(&frame, &stop, &fail), 0);
    assert_int_equal(frame.size, tar.bytes);
    assert_true(digest_of(buffer_peek(&frame.out), layer.digest));
    assert_string_equal(frame.digest, layer.digest);
    layer.inlined = frame.out;
    tar_finish(&tar);
    close(fd);
    return layer;
}

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
    static const char *const names[] = {"user.overlay.redirect", "user.overlay.opaque",
                                        "trusted.overlay.opaque", "security.capability"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buffer records = {0};
        struct fail fail = {0};
        char *path = NULL;
        tar_add_attribute(&records, names[i], slice_from_str("y"));
        struct layer layer = make_by_hand(
            &(struct tar_entry){
                .path = "d", .type = i % 2 ? '5' : '0', .mode = 0755, .records = buffer_peek(&records)},
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
    struct layer layer =
        make_by_hand(&(struct tar_entry){.path = "f", .type = '0', .mode = 0644}, 1);
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
    struct frame_pack frame = {.tar = zeros, .inline_max = 1 << 20, .path = path};
    assert_int_equal(frame_pack(&frame, &stop, &fail), 0);
    assert_true(frame.out.len < 100000);
    struct frame_reader *reader = frame_open(-1, buffer_peek(&frame.out), 1 << 20);
    struct slice piece;
    uint64_t total = 0;
    int code;
    while ((code = frame_read(reader, &piece, &fail)) == 0 && piece.len)
        total += piece.len;
    assert_int_equal(code, -EFBIG);
    assert_true(total <= 1 << 20);
    frame_close(&reader);
    buffer_finish(&frame.out);
    close(zeros);
}

/* ---- sharing ------------------------------------------------------------------------------------
 */

static struct layer shared;
static char *shared_paths[4];
static int shared_ended;
static struct fiber *shared_waiter;

static void unpack_shared(void *arg)
{
    shared_paths[(intptr_t)arg] = unpack(&shared);
}

static void shared_end(void *arg)
{
    (void)arg;
    shared_ended++;
    fiber_wake(shared_waiter);
}

FIBER_TEST(four_at_once_end_in_one_directory)
{
    shared = make_layer(NULL, "for i in $(seq 200); do echo $i > f$i; done");
    shared_ended = 0;
    shared_waiter = fiber_current();
    for (intptr_t i = 0; i < 4; i++)
        assert_non_null(fiber_start(loop, unpack_shared, shared_end, (void *)i));
    while (shared_ended < 4)
        assert_int_equal(await_wake(-1), 0);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(shared_paths[i], shared_paths[0]);
        if (i > 0)
            free(shared_paths[i]);
    }
    assert_int_equal(count_entries(cache), 1);
    free(shared_paths[0]);
    layer_finish(&shared);
}

static int cancelled_code;

static void unpack_cancelled(void *arg)
{
    char *path = NULL;
    struct fail fail;
    (void)arg;
    cancelled_code =
        layer_unpack(&layers, shared.digest, buffer_peek(&shared.inlined), &path, &fail);
    free(path);
}

/* A layer of MANY empty files. */
enum { MANY = 20000 };

static struct layer make_many(void)
{
    struct tar_entry *entries = calloc(MANY, sizeof(*entries));
    char(*names)[16] = calloc(MANY, sizeof(*names));
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "f%d", i);
        entries[i] = (struct tar_entry){.path = names[i], .type = '0', .mode = 0644};
    }
    struct layer layer = make_by_hand(entries, MANY);
    free(entries);
    free(names);
    return layer;
}

FIBER_TEST(a_cancelled_unpack_stops_and_leaves_nothing)
{
    shared = make_many();
    shared_ended = 0;
    shared_waiter = fiber_current();
    struct fiber *fiber = fiber_start(loop, unpack_cancelled, shared_end, NULL);
    assert_int_equal(await_sleep(0), 0); /* it begins */
    fiber_cancel(fiber);
    while (shared_ended < 1)
        assert_int_equal(await_wake(-1), 0);
    assert_int_equal(cancelled_code, -ECANCELED);
    assert_int_equal(count_entries(cache), 0);
    layer_finish(&shared);
}

FIBER_TEST(the_loop_goes_on_while_a_layer_is_unpacked)
{
    shared = make_many();
    shared_ended = 0;
    shared_waiter = fiber_current();
    assert_non_null(fiber_start(loop, unpack_shared, shared_end, (void *)0));
    int turns = 0;
    for (; shared_ended < 1; turns++)
        await_wake(1);
    assert_true(turns >= 5);
    assert_int_equal(count_entries(shared_paths[0]), MANY);
    free(shared_paths[0]);
    layer_finish(&shared);
}

/* What a power failure leaves: a name, and files without their bytes. */
FIBER_TEST(what_was_unpacked_before_the_machine_started_is_unpacked_anew)
{
    static const char *const marks[] = {"6d1b9eb4-0000-4000-8000-7f3f1b0f6c6f\n", NULL};
    struct layer layer = make_layer(NULL, "echo whole > f");
    char *path = unpack(&layer), file[512];
    uint64_t bytes = layer_cache_bytes(&layers);
    snprintf(file, sizeof(file), "%s/workspace/f", path);
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        struct stat it;
        assert_int_equal(truncate(file, 0), 0);
        free(unpack(&layer));
        assert_int_equal(stat(file, &it), 0);
        assert_int_equal(it.st_size, 0); /* one of this boot is not looked into */
        if (marks[i])
            assert_int_equal(setxattr(path, "user.sluice.boot", marks[i], strlen(marks[i]), 0), 0);
        else
            assert_int_equal(removexattr(path, "user.sluice.boot"), 0);
        free(unpack(&layer));
        assert_int_equal(stat(file, &it), 0);
        assert_int_equal(it.st_size, strlen("whole\n"));
        assert_int_equal(count_entries(cache), 1);
        assert_int_equal(layer_cache_bytes(&layers), bytes);
    }
    free(path);
    layer_finish(&layer);
}

FIBER_TEST(a_directory_goes_when_the_last_who_holds_it_discards_it)
{
    struct layer layer = make_layer(NULL, "mkdir d; touch d/f; chmod 0 d");
    struct layer_dir a, b;
    struct fail fail = {0};
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &a, &fail),
                     0);
    assert_int_equal(layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &b, &fail),
                     0);
    layer_dir_discard(&a);
    assert_int_equal(access(b.path, F_OK), 0);
    layer_dir_discard(&b);
    assert_int_equal(count_entries(cache), 0);
    assert_null(b.path);
    layer_finish(&layer);
}

FIBER_TEST(what_is_idle_is_swept_and_what_is_held_stays)
{
    struct layer layer = make_layer(NULL, "touch f"), other = make_layer(NULL, "touch g");
    struct layer_dir held, own;
    struct fail fail = {0};
    int64_t now_s = clock_wall_ms() / 1000;
    assert_int_equal(
        layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &held, &fail), 0);
    assert_int_equal(layer_dir_make(cache, &own, &fail), 0);
    free(unpack(&other));
    write_host_file(store, ".packing.abcdef", "half", 0600);
    layer_cache_sweep(&layers, now_s);
    assert_int_equal(count_entries(cache), 3);
    assert_int_equal(count_entries(store), 1);
    layer_cache_sweep(&layers, now_s + LAYER_IDLE_S + 10);
    assert_int_equal(count_entries(cache), 2);
    assert_int_equal(count_entries(store), 0);
    assert_int_equal(access(held.path, F_OK) + access(own.path, F_OK), 0);
    layer_dir_release(&held);
    layer_dir_discard(&own);
    layer_cache_sweep(&layers, now_s + LAYER_IDLE_S + 10);
    assert_int_equal(count_entries(cache), 0);
    layer_finish(&layer);
    layer_finish(&other);
}

/* ---- the limit of the cache ------------------------------------------------------------------ */

/* A layer of one file of 256 KiB that shrinks to little, told apart by `name`. */
static struct layer make_quarter(const char *name)
{
    char command[128];
    snprintf(command, sizeof(command), "head -c 262144 /dev/zero > %s", name);
    return make_layer(NULL, command);
}

static bool is_unpacked(const struct layer *layer)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", cache, layer->digest + 7);
    return access(path, F_OK) == 0;
}

FIBER_TEST(beyond_the_limit_the_least_recently_used_go_but_none_that_is_held)
{
    enum { COUNT = 6 };
    const struct layers small = {.store = store, .cache = cache, .cache_bytes = 1 << 20};
    struct layer made[COUNT];
    struct layer_dir held, dir;
    struct fail fail = {0};
    for (int i = 0; i < COUNT; i++) {
        char name[8];
        snprintf(name, sizeof(name), "f%d", i);
        made[i] = make_quarter(name);
    }
    const struct slice first = buffer_peek(&made[0].inlined);
    assert_int_equal(layer_dir_hold(&small, made[0].digest, first, &held, &fail), 0);
    for (int i = 1; i < COUNT; i++) {
        assert_int_equal(layer_dir_hold(&small, made[i].digest, buffer_peek(&made[i].inlined), &dir,
                                        &fail), 0);
        layer_dir_release(&dir);
        assert_true(layer_cache_bytes(&small) <= small.cache_bytes);
    }
    assert_true(is_unpacked(&made[0]) && access(held.path, F_OK) == 0); /* the oldest */
    assert_false(is_unpacked(&made[1]));
    assert_true(is_unpacked(&made[COUNT - 1]));
    layer_dir_discard(&held);
    layer_cache_sweep(&small, clock_wall_ms() / 1000 + LAYER_IDLE_S + 10);
    assert_int_equal(count_entries(cache), 0);
    assert_int_equal(layer_cache_bytes(&small), 0);
    for (int i = 0; i < COUNT; i++)
        layer_finish(&made[i]);
}

FIBER_TEST(a_count_that_was_lost_is_set_right)
{
    const struct layers small = {.store = store, .cache = cache, .cache_bytes = 1 << 20};
    struct layer one = make_quarter("one"), two = make_quarter("two");
    free(unpack(&one));
    uint64_t bytes = layer_cache_bytes(&small);
    assert_true(bytes > 262144 && bytes < 300000);
    write_host_file(cache, ".usage", "99999999999", 0644);
    layer_cache_trim(&small);
    assert_int_equal(layer_cache_bytes(&small), bytes);
    free(unpack(&two));
    write_host_file(cache, ".usage", "99999999999999999999999 and nonsense", 0644);
    layer_cache_sweep(&small, clock_wall_ms() / 1000);
    assert_int_equal(layer_cache_bytes(&small), 2 * bytes);
    layer_finish(&one);
    layer_finish(&two);
}

/* Needs a disk of its own. */
FIBER_TEST(a_full_disk_is_swept_and_tried_once_more)
{
    char path[256];
    struct fail fail = {0};
    struct layer_dir held;
    if (geteuid() != 0) { /* skip() would leave the fiber by a jump */
        print_message("needs root for a disk of its own\n");
        return;
    }
    struct layer one = make_quarter("one"), two = make_quarter("two"), big = make_layer(NULL,
        "head -c 2000000 /dev/zero > big"), last = make_quarter("last");
    assert_int_equal(mount("none", cache, "tmpfs", 0, "size=1m,mode=0755"), 0);
    free(unpack(&one));
    free(unpack(&two));
    snprintf(path, sizeof(path), "%s/ballast", cache);
    AUTO_CLOSE int ballast = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(posix_fallocate(ballast, 0, 400000), 0);
    assert_int_equal(layer_dir_hold(&layers, last.digest, buffer_peek(&last.inlined), &held, &fail), 0);
    assert_false(is_unpacked(&one)); /* the older half made room */
    int code = layer_unpack(&layers, big.digest, buffer_peek(&big.inlined), &(char *){NULL}, &fail);
    assert_int_equal(code, -ENOSPC);
    assert_int_equal(layer_fault(code), FAULT_NODE);
    assert_non_null(strstr(fail.text, "no room for the layer sha256:"));
    assert_non_null(strstr(fail.text, cache));
    assert_true(is_unpacked(&last)); /* held */
    layer_dir_release(&held);
    assert_int_equal(umount2(cache, MNT_DETACH), 0);
    layer_finish(&one), layer_finish(&two), layer_finish(&big), layer_finish(&last);
}

/* ---- where character devices are refused
 * --------------------------------------------------------- */

/* In a process of its own, which the kernel refuses mknodat. */
static void hide_without_devices(const char *dir, const char *path)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mknodat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = 4, .filter = code};
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        struct fail fail;
        int root = open(dir, O_RDONLY | O_DIRECTORY);
        bool ready = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                     syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
        _exit(ready && tree_hide(root, path, &fail) == 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

FIBER_TEST(whiteouts_without_devices_hide_as_well)
{
    struct layer layer = make_layer(NULL, "mkdir d; touch d/gone d/kept");
    struct layer_dir own;
    struct fail fail = {0};
    char *lower = unpack(&layer);
    assert_int_equal(layer_dir_make(cache, &own, &fail), 0);
    hide_without_devices(own.path, "workspace/d/gone");
    struct sandbox *sandbox = open_on(lower, own.path);
    expect_text(sandbox, "ls d; test -e d/gone || echo hidden", "kept\nhidden\n");
    sandbox_close(&sandbox);
    layer_dir_discard(&own);
    layer_finish(&layer);
    free(lower);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_layers, tear_down_layers)
    const struct CMUnitTest tests[] = {
        TEST(files_links_modes_and_times_come_back_as_they_were),
        TEST(what_was_removed_or_replaced_below_stays_so),
        TEST(names_attributes_and_what_is_left_out_are_as_they_were),
        TEST(nothing_written_is_no_layer),
        TEST(a_small_layer_is_inline_and_a_large_one_in_the_store),
        TEST(a_store_that_takes_nothing_is_the_reason_given),
        TEST(files_that_cannot_be_packed_are_the_reason_given_and_leave_nothing),
        TEST(a_layer_that_is_damaged_or_absent_is_refused_by_name),
        TEST(a_layer_that_leads_out_is_refused_and_leaves_nothing),
        TEST(attributes_that_no_layer_has_are_refused),
        TEST(markers_that_name_nothing_are_passed_over),
        TEST(an_opaque_root_hides_and_rights_of_other_users_are_not_given),
        TEST(bytes_that_are_no_whole_frame_or_no_tar_are_refused),
        TEST(a_frame_that_grows_without_bound_is_cut_off),
        TEST(four_at_once_end_in_one_directory),
        TEST(a_cancelled_unpack_stops_and_leaves_nothing),
        TEST(the_loop_goes_on_while_a_layer_is_unpacked),
        TEST(a_directory_goes_when_the_last_who_holds_it_discards_it),
        TEST(what_was_unpacked_before_the_machine_started_is_unpacked_anew),
        TEST(what_is_idle_is_swept_and_what_is_held_stays),
        TEST(beyond_the_limit_the_least_recently_used_go_but_none_that_is_held),
        TEST(a_count_that_was_lost_is_set_right),
        TEST(a_full_disk_is_swept_and_tried_once_more),
        TEST(whiteouts_without_devices_hide_as_well),
    };
    return cmocka_run_group_tests_name("layer", tests, NULL, NULL);
}

int main(void)
{
    return run_as_everyone(group);
}
