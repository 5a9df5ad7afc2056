/* Layers: what a sandbox wrote, packed, named, kept, unpacked and seen again by another. */
#include "tests/workers/layers/layer_making.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "workers/layers/dir.h"

FIBER_TEST(files_links_modes_and_times_come_back_as_they_were)
{
    struct layer layer = make_layer(
        NULL, "set -e; umask 022; echo hello > a; chmod 750 a; ln a b; ln -s /usr/bin/env c; mkdir -p "
              "d/e;"
              "touch -d @1000000000.5 a; echo x > $'na\\xffme'; echo y > 'h\u00e9 \u4e2d'; mkfifo q;"
              "truncate -s 32M sparse; printf end >> sparse; mkdir shut; echo in > shut/f; chmod 0 shut;"
              "echo s > none; chmod 0 none; touch -d @1234567890 d; echo t > /tmp/t; chmod 1777 d/e");
    char *path = unpack(&layer);
    struct sandbox *sandbox = open_on(path, NULL);
    expect_text(sandbox, "cat a b; stat -c '%a %h %Y' a; readlink c; cat /tmp/t",
                "hello\nhello\n750 2 1000000000\n/usr/bin/env\nt\n");
    expect_text(sandbox, "cat $'na\\xffme' 'h\u00e9 \u4e2d'", "x\ny\n");
    expect_text(sandbox, "stat -c '%s %b' sparse | (read s b; echo $s; test $b -lt 4096 && tail -c 3 sparse)",
                "33554435\nend");
    expect_text(sandbox, "stat -c '%a %Y' d; stat -c %a shut none d/e; test a -ef b && echo same",
                "755 1234567890\n0\n0\n1777\nsame\n");
    expect_text(sandbox, "chmod 700 shut; cat shut/f; chmod 600 none; cat none; stat -c %u:%g a", "in\ns\n1000:1000\n");
    sandbox_close(&sandbox);
    free(path);
    layer_finish(&layer);
}

FIBER_TEST(what_was_removed_or_replaced_below_stays_so)
{
    struct layer first = make_layer(NULL, "mkdir -p d o/sub r; touch d/gone d/kept o/old o/sub/deep r/x f");
    char *lower = unpack(&first);
    struct layer second = make_layer(lower, "set -e; rm d/gone; rm -r o; mkdir o; touch o/new; rm "
                                            "-r r; echo file > r; rm f; mkdir f; touch f/in");
    char *upper = unpack(&second);
    struct sandbox *sandbox = open_on(lower, upper);
    expect_text(sandbox, "find . -type f -o -type c | sort; cat r", "./d/kept\n./f/in\n./o/new\n./r\nfile\n");
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
        lower, "set -e; mkdir .wh.d; echo in > .wh.d/.wh.f; rm .wh.low d/p; mkfifo d/p; touch d/f;"
               "python3 -c 'import os; os.setxattr(\"d/f\", \"user.note\", b\"a\\0\\nb\");"
               "os.setxattr(\"d\", \"user.of.d\", b\"\"); os.setxattr(\"d/q\", \"user.q\", b\"q\" "
               "* 1000)'");
    char *upper = unpack(&second);
    struct sandbox *sandbox = open_on(lower, upper);
    expect_text(sandbox, "cat .wh.d/.wh.f; ls -A . d", "in\n.:\n.wh.d\nd\n\nd:\nf\nq\n");
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
    snprintf(stored, sizeof(stored), "%s/%.2s/%s.tar.lz4", store, large.digest + 7, large.digest + 7);
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
    expect_status(sandbox,
                  "head -c 4M /dev/urandom > a; mkdir z; cd z; perl -e 'for (1..300) { mkdir q(d); "
                  "chdir q(d) }'",
                  0);
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
    assert_int_equal(layer_unpack(&layers, small.digest, buffer_peek(&small.inlined), &path, &fail), -EBADMSG);
    struct layer other = make_layer(NULL, "echo other > f"); /* whole, but not what was named */
    assert_int_equal(layer_unpack(&layers, small.digest, buffer_peek(&other.inlined), &path, &fail), -EBADMSG);
    layer_finish(&other);
    snprintf(stored, sizeof(stored), "%s/%.2s/%s.tar.lz4", store, large.digest + 7, large.digest + 7);
    assert_int_equal(chmod(stored, 0644), 0);
    assert_int_equal(truncate(stored, 1000), 0);
    assert_int_equal(layer_unpack(&layers, large.digest, slice_of(NULL, 0), &path, &fail), -EBADMSG);
    assert_int_equal(layer_unpack(&layers, "sha256:../../etc", slice_of(NULL, 0), &path, &fail), -EINVAL);
    assert_null(path);
    layer_finish(&small);
    layer_finish(&large);
}

/* ---- where character devices are refused ----------------------------------------------------- */

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
        _exit(ready && dirtree_hide(root, path, &fail) == 0 ? 0 : 1);
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
    const struct CMUnitTest tests[] = {
        LAYER_TEST(files_links_modes_and_times_come_back_as_they_were),
        LAYER_TEST(what_was_removed_or_replaced_below_stays_so),
        LAYER_TEST(names_attributes_and_what_is_left_out_are_as_they_were),
        LAYER_TEST(nothing_written_is_no_layer),
        LAYER_TEST(a_small_layer_is_inline_and_a_large_one_in_the_store),
        LAYER_TEST(a_store_that_takes_nothing_is_the_reason_given),
        LAYER_TEST(files_that_cannot_be_packed_are_the_reason_given_and_leave_nothing),
        LAYER_TEST(a_layer_that_is_damaged_or_absent_is_refused_by_name),
        LAYER_TEST(whiteouts_without_devices_hide_as_well),
    };
    return cmocka_run_group_tests_name("layer", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
