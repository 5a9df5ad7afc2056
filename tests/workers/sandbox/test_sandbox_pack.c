/* What a sandbox wrote, as an archive; and directories of earlier ones under the next. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "workers/sandbox/init/services/pack.h"
#include "workers/sandbox/requests.h"

static char image[128], upper_layer[128], lower_layer[128];

/* Used as a layer over "host", for the programs. */
static void make_image(void)
{
    make_dir(image, sizeof(image), "image");
    write_host_file(image, "keep", "keep\n", 0644);
    write_host_file(image, "gone", "gone\n", 0644);
    char dir[256];
    snprintf(dir, sizeof(dir), "%s/replaced", image);
    assert_int_equal(mkdir(dir, 0755), 0);
    write_host_file(dir, "old", "old\n", 0644);
}

static struct sandbox *open_over(const char *layer)
{
    static const char *layers[1];
    struct sandbox_plan plan = host_plan();
    layers[0] = layer;
    plan.layers = layers;
    plan.layer_count = 1;
    return open_sandbox(&plan);
}

static int pack(struct sandbox *sandbox, uint64_t *bytes)
{
    struct fail fail = {0};
    int fd = memfd_create("tar", MFD_CLOEXEC);
    if (sandbox_pack(sandbox, fd, bytes, &fail) < 0)
        fail_msg("sandbox_pack: %s", fail.text);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), (off_t)*bytes);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* "type mode path[ -> link][ = content]", a line each */
static char *list(int fd)
{
    struct archive *archive = archive_read_new();
    struct archive_entry *entry;
    struct buffer text = {0};
    archive_read_support_format_tar(archive);
    assert_int_equal(archive_read_open_fd(archive, fd, 65536), ARCHIVE_OK);
    int code;
    while ((code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK) {
        const char *link = archive_entry_symlink(entry), *hard = archive_entry_hardlink(entry);
        char content[64] = "";
        char type = hard ? 'h' : S_ISDIR(archive_entry_mode(entry)) ? 'd' : link ? 'l' : 'f';
        buffer_printf(&text, "%c %o %s", type, archive_entry_mode(entry) & 07777, archive_entry_pathname(entry));
        if (link || hard)
            buffer_printf(&text, " -> %s", link ? link : hard);
        if (type == 'f' && archive_read_data(archive, content, sizeof(content) - 1) > 0)
            buffer_printf(&text, " = %s", content);
        else
            buffer_append_str(&text, "\n");
    }
    if (code != ARCHIVE_EOF)
        fail_msg("%s", archive_error_string(archive));
    archive_read_free(archive);
    close(fd);
    return buffer_take_str(&text);
}

static void expect_list(struct sandbox *sandbox, const char *expected)
{
    uint64_t bytes;
    char *text = list(pack(sandbox, &bytes));
    assert_string_equal(text, expected);
    free(text);
}

FIBER_TEST(nothing_written_is_nothing_packed)
{
    uint64_t bytes = 1;
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "ls -R /tmp /workspace; cat /etc/passwd", 0);
    close(pack(sandbox, &bytes));
    assert_int_equal(bytes, 0);
    sandbox_close(&sandbox);
}

FIBER_TEST(what_was_written_is_packed_in_the_order_of_names)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox,
                  "echo b > b; mkdir -m 700 d; echo f > d/f; chmod 4755 d/f; echo a > a; ln -s /no/where s;"
                  "mkdir empty; echo t > /tmp/t; : > nil",
                  0);
    expect_list(sandbox, "d 1777 tmp\nf 644 tmp/t = t\nd 755 workspace\nf 644 workspace/a = a\n"
                         "f 644 workspace/b = b\nd 700 workspace/d\nf 4755 workspace/d/f = f\n"
                         "d 755 workspace/empty\nf 644 workspace/nil\nl 777 workspace/s -> /no/where\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(what_was_removed_is_a_whiteout_and_what_was_replaced_is_opaque)
{
    make_image();
    struct sandbox *sandbox = open_over(image);
    expect_status(sandbox, "rm /gone; rm -r /replaced; mkdir /replaced; echo n > /replaced/new", 0);
    expect_list(sandbox, "f 644 .wh.gone\nd 755 replaced\nf 644 replaced/.wh..wh..opq\n"
                         "f 644 replaced/new = n\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(what_is_left_out_still_hides_what_it_stands_in_front_of)
{
    make_image();
    struct sandbox *sandbox = open_over(image);
    expect_status(sandbox,
                  "rm /gone; mkfifo /gone; mkdir d; mkfifo d/only; rm -r /replaced; mkdir /replaced;"
                  "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0);"
                  "bind(S, pack_sockaddr_un(\"/replaced/old\"))'; unlink /keep; mkfifo -m 600 /keep",
                  0);
    expect_list(sandbox, "f 644 .wh.gone\nf 644 .wh.keep\nd 755 replaced\n"
                         "f 644 replaced/.wh..wh..opq\nd 755 workspace\nd 755 workspace/d\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(names_that_look_like_markers_are_escaped)
{
    make_image();
    write_host_file(image, ".wh.below", "below", 0644);
    struct sandbox *sandbox = open_over(image);
    expect_status(sandbox, "mkdir .wh.d; printf x > .wh.d/.wh.f; printf y > .wh..wh..opq; rm /.wh.below", 0);
    expect_list(sandbox, "f 644 .wh..wh..wh.sluice..wh.below\nd 755 workspace\n"
                         "f 644 workspace/.wh..wh.sluice..wh..wh..opq = y"
                         "d 755 workspace/.wh..wh.sluice..wh.d\n"
                         "f 644 workspace/.wh..wh.sluice..wh.d/.wh..wh.sluice..wh.f = x");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_file_too_long_to_be_unpacked_is_refused_with_words)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    uint64_t bytes;
    char *text;
    AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    int status = run_text(sandbox, "truncate -s 2T long", &text);
    free(text);
    if (status == 0) { /* unless a limit of the sandbox came first */
        assert_int_equal(sandbox_pack(sandbox, fd, &bytes, &fail), -EFBIG);
        assert_string_equal(fail.text, "a file of more than 1024 GiB: workspace/long");
    }
    sandbox_close(&sandbox);
}

FIBER_TEST(hard_links_are_links)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "echo x > a; ln a b; mkdir d; ln a d/c; echo y > e", 0);
    expect_list(sandbox, "d 755 workspace\nf 644 workspace/a = x\nh 644 workspace/b -> workspace/a\n"
                         "d 755 workspace/d\nh 644 workspace/d/c -> workspace/a\nf 644 workspace/e = y\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(odd_names_are_bytes)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox,
                  "printf x > $'new\\nline'; printf x > $'\\xff\\xfe'; printf x > 'ü \" *'; printf x > -rf;"
                  "n=$(printf 'n%.0s' {1..200}); printf x > $n; mkdir -p $n.d/$n/$n;"
                  "printf x > $n.d/$n/$n/$n; ln -s /$n/$n $n.d/l; ln $n.d/$n/$n/$n $n.d/h;"
                  "printf x > .wh.hidden",
                  0);
    uint64_t bytes;
    char n[201], expected[8192];
    memset(n, 'n', 200);
    n[200] = '\0';
    char *text = list(pack(sandbox, &bytes));
    const char *w = "workspace";
    snprintf(expected, sizeof(expected),
             "d 755 %s\nf 644 %s/-rf = x"
             "f 644 %s/.wh..wh.sluice..wh.hidden = x"
             "f 644 %s/new\nline = x"
             "f 644 %s/%s = x"
             "d 755 %s/%s.d\nf 644 %s/%s.d/h = xl 777 %s/%s.d/l -> /%s/%s\n"
             "d 755 %s/%s.d/%s\nd 755 %s/%s.d/%s/%s\nh 644 %s/%s.d/%s/%s/%s -> %s/%s.d/h\n"
             "f 644 %s/\xc3\xbc \" * = x"
             "f 644 %s/\xff\xfe = x",
             w, w, w, w, w, n, w, n, w, n, w, n, n, n, w, n, n, w, n, n, n, w, n, n, n, n, w, n, w, w);
    assert_string_equal(text, expected);
    free(text);
    sandbox_close(&sandbox);
}

FIBER_TEST(files_that_may_not_be_read_are_packed_as_they_are)
{
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "mkdir d; echo s > d/secret; chmod 0 d/secret; chmod 0 d", 0);
    expect_list(sandbox, "d 755 workspace\nd 0 workspace/d\nf 0 workspace/d/secret = s\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(times_are_kept_to_the_nanosecond)
{
    static const struct {
        const char *name;
        int64_t seconds;
        long nanoseconds;
    } times[] = {{"workspace/a", 1000000000, 123456789},
                 {"workspace/b", 1000000000, 0},
                 {"workspace/c", -2, 0}, /* whole seconds before 1970 */
                 {"workspace/d", 100000000000, 1}};
    struct sandbox *sandbox = open_host();
    uint64_t bytes;
    size_t seen = 0, count = fixture_tier == TIER_overlay_disk ? 3 : 4; /* a disk may end in 2446 */
    expect_status(sandbox,
                  "touch -d @1000000000.123456789 a; touch -d @1000000000 b; touch -d @-1.75 c;"
                  "touch -d @100000000000.000000001 d",
                  0);
    AUTO_CLOSE int fd = pack(sandbox, &bytes);
    struct archive *archive = archive_read_new();
    struct archive_entry *entry;
    archive_read_support_format_tar(archive);
    archive_read_open_fd(archive, fd, 65536);
    while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
        if (seen == count || strcmp(archive_entry_pathname(entry), times[seen].name) != 0)
            continue;
        assert_int_equal(archive_entry_mtime(entry), times[seen].seconds);
        assert_int_equal(archive_entry_mtime_nsec(entry), times[seen].nanoseconds);
        seen++;
    }
    assert_int_equal(seen, count);
    archive_read_free(archive);
    sandbox_close(&sandbox);
}

FIBER_TEST(holes_stay_holes)
{
    struct sandbox *sandbox = open_host();
    uint64_t bytes;
    const char *make = "truncate -s 60M hole; printf end | dd of=hole bs=1 seek=50M conv=notrunc 2>/dev/null;"
                       "printf begin | dd of=hole conv=notrunc 2>/dev/null; truncate -s 3M empty;"
                       "echo 1 > plain; sha256sum < hole";
    char *sum, *again, command[512];
    assert_int_equal(run_text(sandbox, make, &sum), 0);
    AUTO_CLOSE int fd = pack(sandbox, &bytes);
    assert_true(bytes < 100000);
    char into[128];
    make_dir(into, sizeof(into), "unpacked");
    /* by an unpacker that is not ours, and one more */
    snprintf(command, sizeof(command),
             "cd %s && tar xf /proc/self/fd/%d --no-same-owner && sha256sum < workspace/hole && "
             "stat -c %%s workspace/empty && du -k workspace/hole",
             into, fd);
    fcntl(fd, F_SETFD, 0);
    FILE *pipe = popen(command, "r");
    char text[512];
    size_t len = fread(text, 1, sizeof(text) - 1, pipe);
    text[len] = '\0';
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(strncmp(text, sum, strlen(sum)), 0);
    assert_non_null(strstr(text, "\n3145728\n"));
    lseek(fd, 0, SEEK_SET);
    again = list(take_fd(&fd));
    assert_non_null(strstr(again, "f 644 workspace/hole = begin"));
    assert_non_null(strstr(again, "f 644 workspace/plain = 1\n"));
    free(again);
    free(sum);
    sandbox_close(&sandbox);
}

FIBER_TEST(the_same_files_give_the_same_bytes)
{
    struct sandbox *sandbox = open_host();
    uint64_t first, second;
    expect_status(sandbox, "for i in $(seq 500 -1 1); do echo $i > $i; done; head -c 300000 /dev/urandom > r", 0);
    AUTO_CLOSE int a = pack(sandbox, &first), b = pack(sandbox, &second);
    assert_int_equal(first, second);
    char *x = mmap(NULL, first, PROT_READ, MAP_PRIVATE, a, 0);
    char *y = mmap(NULL, first, PROT_READ, MAP_PRIVATE, b, 0);
    assert_memory_equal(x, y, first);
    munmap(x, first);
    munmap(y, first);
    sandbox_close(&sandbox);
}

FIBER_TEST(packing_kills_what_still_writes)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t pid;
    uint64_t bytes;
    const char *argv[] = {"/bin/bash", "-c", "while :; do echo x >> f; done", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    close(pack(sandbox, &bytes));
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 256 + 9);
    sandbox_close(&sandbox);
}

/* Whoever else has not written it yet will. */
static void await_file(struct sandbox *sandbox, const char *path)
{
    struct fail fail = {0};
    int file = -1;
    for (int i = 0; i < 10000 && file < 0; i++)
        file = sandbox_open_file(sandbox, path, O_RDONLY, 0, &fail);
    if (file < 0)
        fail_msg("%s", fail.text);
    close(file);
}

FIBER_TEST(a_snapshot_lets_those_go_on_who_write)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    pid_t pid;
    uint64_t bytes;
    const char *argv[] = {"/bin/bash", "-c", "while [ ! -e end ]; do echo x >> f; done", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    await_file(sandbox, "f");
    assert_int_equal(sandbox_snapshot(sandbox, fd, &bytes, &fail), 0);
    AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    uint64_t none;
    assert_int_equal(sandbox_snapshot(sandbox, full, &none, &fail), -ENOSPC); /* and go on all the same */
    assert_int_equal(sandbox_write_file(sandbox, "end", "", 0, 0644, &fail), 0);
    assert_int_equal(sandbox_wait(sandbox, pid, &fail), 0);
    lseek(fd, 0, SEEK_SET);
    char *text = list(take_fd(&fd));
    assert_non_null(strstr(text, "d 755 workspace\n"));
    free(text);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_snapshot_waits_for_no_end_of_those_who_keep_starting_others)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    uint64_t bytes;
    pid_t pid;
    const char *argv[] = {"/bin/bash", "-c", "f() { (f) & }; while :; do f; kill -CONT -1; done 2> /dev/null", NULL};
    assert_int_equal(sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    int code = sandbox_snapshot(sandbox, fd, &bytes, &fail);
    if (code != 0 && code != -EBUSY)
        fail_msg("%d: %s", code, fail.text);
    assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_tree_too_deep_to_pack_is_refused_with_words)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    uint64_t bytes;
    expect_status(sandbox, "perl -e 'for (1..3000) { mkdir q(d); chdir q(d) }'", 0);
    AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    assert_int_equal(sandbox_pack(sandbox, fd, &bytes, &fail), -ENAMETOOLONG);
    assert_string_equal(fail.text, "directories more than 256 deep");
    expect_text(sandbox, "echo alive", "alive\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(a_file_that_cannot_be_written_to_is_an_error)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    uint64_t bytes;
    expect_status(sandbox, "echo a > a", 0);
    AUTO_CLOSE int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(sandbox_pack(sandbox, fd, &bytes, &fail), -ENOSPC);
    assert_string_equal(fail.text, "cannot write the archive: No space left on device");
    sandbox_close(&sandbox);
}

/* ---- layers --------------------------------------------------------------------------- */

FIBER_TEST(layers_lie_over_the_image_the_last_one_on_top)
{
    char path[256];
    make_image();
    make_dir(lower_layer, sizeof(lower_layer), "lower: with, odd\\name");
    make_dir(upper_layer, sizeof(upper_layer), "upper");
    write_host_file(lower_layer, "both", "lower\n", 0644);
    write_host_file(lower_layer, "only", "only\n", 0644);
    write_host_file(upper_layer, "both", "upper\n", 0644);
    snprintf(path, sizeof(path), "%s/gone", upper_layer);
    assert_int_equal(mknod(path, S_IFCHR | 0600, makedev(0, 0)), 0);
    snprintf(path, sizeof(path), "%s/replaced", upper_layer);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(setxattr(path, "user.overlay.opaque", "y", 1, 0), 0);
    const char *layers[] = {image, lower_layer, upper_layer};
    struct sandbox_plan plan = host_plan();
    plan.layers = layers;
    plan.layer_count = 3;
    struct sandbox *sandbox = open_sandbox(&plan);
    expect_text(sandbox, "cat /both /only /keep; ls /gone /replaced 2>&1; stat -c %u /keep",
                "upper\nonly\nkeep\nls: cannot access '/gone': No such file or "
                "directory\n/replaced:\n1000\n");
    expect_text(sandbox, "echo more >> /keep; rm /only; mv /both /moved; cat /keep /moved", "keep\nmore\nupper\n");
    sandbox_close(&sandbox);
    sandbox = open_sandbox(&plan); /* nothing of that came through */
    expect_text(sandbox, "cat /both /only /keep", "upper\nonly\nkeep\n");
    sandbox_close(&sandbox);
}

FIBER_TEST(symlinks_of_an_image_lead_nowhere_outside)
{
    static const char *const names[] = {"workspace", "run", "proc", "dev", "var", "mine"};
    char path[256], command[512], *text;
    make_dir(image, sizeof(image), "image");
    write_host_file(directory, "secret", "of the host", 0644);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", image, names[i]);
        assert_int_equal(symlink(directory, path), 0);
    }
    struct sandbox *sandbox = open_over(image);
    struct fail fail = {0};
    snprintf(command, sizeof(command), "cat /mine/secret %s/secret; echo x > /mine/made; pwd", directory);
    run_text(sandbox, command, &text);
    assert_null(strstr(text, "of the host"));
    assert_non_null(strstr(text, "/workspace\n"));
    free(text);
    assert_int_equal(sandbox_write_file(sandbox, "/mine/made", "x", 1, 0644, &fail), -ENOENT);
    snprintf(path, sizeof(path), "%s/made", directory);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof(path), "%s/run", image);
    assert_true(readlink(path, command, sizeof(command)) > 0); /* the image is as it was */
    sandbox_close(&sandbox);
}

FIBER_TEST(a_layer_that_has_files_for_our_directories_does_not_keep_the_container_shut)
{
    static const char *const names[] = {"workspace", "run", "proc", "dev", "tmp"};
    make_dir(image, sizeof(image), "image");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        write_host_file(image, names[i], "a file", 0644);
    struct sandbox *sandbox = open_over(image);
    expect_text(sandbox, "pwd; echo hi > f; cat f; ls /proc/1 > /dev/null && echo fine", "/workspace\nhi\nfine\n");
    sandbox_close(&sandbox);
}

/* fuse-overlayfs notes every directory as opaque: its own test is in test_tiers.c. */
static int group(void)
{
    if (fixture_tier == TIER_fuse_overlayfs)
        return 0;
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_written_is_nothing_packed),
        TEST(what_was_written_is_packed_in_the_order_of_names),
        TEST(what_was_removed_is_a_whiteout_and_what_was_replaced_is_opaque),
        TEST(what_is_left_out_still_hides_what_it_stands_in_front_of),
        TEST(names_that_look_like_markers_are_escaped),
        TEST(a_file_too_long_to_be_unpacked_is_refused_with_words),
        TEST(hard_links_are_links),
        TEST(odd_names_are_bytes),
        TEST(files_that_may_not_be_read_are_packed_as_they_are),
        TEST(times_are_kept_to_the_nanosecond),
        TEST(holes_stay_holes),
        TEST(the_same_files_give_the_same_bytes),
        TEST(packing_kills_what_still_writes),
        TEST(a_snapshot_lets_those_go_on_who_write),
        TEST(a_snapshot_waits_for_no_end_of_those_who_keep_starting_others),
        TEST(a_tree_too_deep_to_pack_is_refused_with_words),
        TEST(a_file_that_cannot_be_written_to_is_an_error),
        TEST(layers_lie_over_the_image_the_last_one_on_top),
        TEST(symlinks_of_an_image_lead_nowhere_outside),
        TEST(a_layer_that_has_files_for_our_directories_does_not_keep_the_container_shut),
    };
    return cmocka_run_group_tests_name("sandbox pack", tests, NULL, NULL);
}

int main(void) { return run_in_every_tier(group); }
