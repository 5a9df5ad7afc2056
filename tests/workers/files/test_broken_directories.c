/* A directory that a failing disk ends early is an error everywhere, and not one with fewer names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"
#include "workers/files/dirtree.h"
#include "workers/files/dirtree_keep.h"
#include "common/files/dirtree_remove.h"
#include "workers/images/rootfs/copy.h"
#include "workers/sandbox/init/services/copy.h"
#include "workers/sandbox/init/services/pack.h"
#include "workers/sources/source.h"

/* ---- the disk ------------------------------------------------------------------------------------- */

static int names_left; /* until it fails; negative: it does not */

struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);

struct dirent *__wrap_readdir(DIR *stream)
{
    struct dirent *entry;
    if (names_left == 0) {
        errno = EIO;
        return NULL;
    }
    entry = __real_readdir(stream);
    names_left -= names_left > 0 && entry && entry->d_name[0] != '.';
    return entry;
}

static char top[64];
static int from, to;

static int set_up(void **state)
{
    struct fail fail = {0};
    (void)state;
    names_left = -1;
    snprintf(top, sizeof(top), "/tmp/sluice-broken-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    AUTO_CLOSE int root = open(top, O_RDONLY | O_DIRECTORY);
    if (dirtree_write(root, "from/a", slice_from_str("a"), 0644, &fail) < 0 ||
        dirtree_write(root, "from/b", slice_from_str("b"), 0644, &fail) < 0 || mkdirat(root, "to", 0755) < 0)
        return -1;
    from = openat(root, "from", O_RDONLY | O_DIRECTORY);
    to = openat(root, "to", O_RDONLY | O_DIRECTORY);
    names_left = 1;
    return from < 0 || to < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    names_left = -1;
    close(from);
    close(to);
    return dirtree_remove(top);
}

/* ---- who reads directories -------------------------------------------------------------------------- */

static void a_source_is_not_copied_in_part(void **state)
{
    char source[80];
    struct fail fail = {0};
    struct image_list own = {0};
    struct task_dirs dirs = {.own = &own};
    const atomic_bool stop = false;
    bool is_file;
    (void)state;
    snprintf(source, sizeof(source), "%s/from", top);
    assert_int_equal(task_dirs_add(&dirs, top, &fail), 0);
    const struct source_order order = {.dirs = &dirs, .source = source, .disk_mib = 1, .stop = &stop};
    assert_int_equal(source_copy(&order, to, "x", &is_file, &fail), -EIO);
    assert_non_null(strstr(fail.text, "cannot read it: "));
    task_dirs_finish(&dirs);
}

static void an_image_is_not_copied_in_part(void **state)
{
    struct image_trouble trouble = {0};
    struct rootfs rootfs;
    const struct rootfs_limits limits = {.bytes = 1 << 20, .entries = 100};
    const atomic_bool stop = false;
    (void)state;
    rootfs_init(&rootfs, to, &limits, &stop, &trouble);
    assert_int_equal(copy_directory(from, &rootfs), -EIO);
    rootfs_finish(&rootfs);
}

static void a_layer_is_not_packed_in_part(void **state)
{
    uint64_t bytes;
    struct touched touched = {0};
    struct fail fail = {0};
    AUTO_CLOSE int file = openat(to, "layer", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    (void)state;
    assert_int_equal(pack_upper(from, file, PACK_FIRST, NULL, &bytes, &touched, &fail), -EIO);
    assert_non_null(strstr(fail.text, "cannot list"));
}

static void files_are_not_copied_into_a_sandbox_in_part(void **state)
{
    char path[80];
    struct fail fail = {0};
    (void)state;
    snprintf(path, sizeof(path), "%s/to/x", top);
    assert_int_equal(copy_in(from, path, 0, &fail), -EIO);
}

static void what_is_to_go_is_not_left_in_part(void **state)
{
    struct fail fail = {0};
    char path[80];
    (void)state;
    assert_int_equal(dirtree_keep(from, "/", "a", &fail), -EIO);
    names_left = 1;
    snprintf(path, sizeof(path), "%s/from", top);
    assert_int_equal(dirtree_remove(path), -EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_source_is_not_copied_in_part),    TEST(an_image_is_not_copied_in_part),
        TEST(a_layer_is_not_packed_in_part),     TEST(files_are_not_copied_into_a_sandbox_in_part),
        TEST(what_is_to_go_is_not_left_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
