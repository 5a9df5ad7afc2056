#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/files/dir_stream.h"

static char directory[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "%s/sluice-dirs-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(directory))
        return -1;
    AUTO_CLOSE int dir = open(directory, O_PATH);
    return mkdirat(dir, "a", 0700) == 0 && mkdirat(dir, "b", 0700) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    AUTO_CLOSE int dir = open(directory, O_PATH);
    unlinkat(dir, "a", AT_REMOVEDIR);
    unlinkat(dir, "b", AT_REMOVEDIR);
    return rmdir(directory);
}

static size_t count(int dir, int *ret)
{
    const struct dirent *entry;
    AUTO_DIR stream = dir_stream_open(dir);
    size_t names = 0;
    assert_non_null(stream);
    while ((*ret = dir_stream_next(stream, &entry)) > 0)
        names += entry->d_name[1] == '\0' && (entry->d_name[0] == 'a' || entry->d_name[0] == 'b') ? 1 : 100;
    return names;
}

static void each_stream_has_all_names_but_the_dots_from_the_beginning(void **state)
{
    int code;
    AUTO_CLOSE int dir = open(directory, O_RDONLY | O_DIRECTORY);
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(count(dir, &code), 2);
        assert_int_equal(code, 0);
    }
}

static void what_cannot_be_read_on_is_no_end(void **state)
{
    const struct dirent *entry;
    AUTO_CLOSE int dir = open(directory, O_RDONLY | O_DIRECTORY), file = open("/dev/null", O_RDONLY);
    AUTO_DIR stream = dir_stream_open(dir);
    (void)state;
    assert_non_null(stream);
    assert_int_equal(dup2(file, dirfd(stream)), dirfd(stream));
    assert_int_equal(dir_stream_next(stream, &entry), -ENOTDIR);
}

static void what_is_no_directory_has_no_stream(void **state)
{
    AUTO_CLOSE int file = open("/dev/null", O_RDONLY);
    (void)state;
    assert_null(dir_stream_open(file));
    assert_int_equal(errno, ENOTDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stream_has_all_names_but_the_dots_from_the_beginning),
        cmocka_unit_test(what_cannot_be_read_on_is_no_end),
        cmocka_unit_test(what_is_no_directory_has_no_stream),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
