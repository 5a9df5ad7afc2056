/* Files between an evaluator and its sandbox, but for the sandbox. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/files/file_give.h"
#include "common/files/dirtree_remove.h"

static char top[64];
static int root;

static int set_up(void **state)
{
    (void)state;
    strcpy(top, "/tmp/sluice-given-XXXXXX");
    root = mkdtemp(top) ? open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return root < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(root);
    return dirtree_remove(top);
}

static void what_is_given_can_be_read_inside_whatever_our_umask(void **state)
{
    struct fail fail = {0};
    struct stat it;
    (void)state;
    const mode_t before = umask(077);
    int code = file_give(root, "answer", 0444, slice_from_str("42"), &fail);
    umask(before);
    assert_int_equal(code, 0);
    assert_true(fstatat(root, "answer", &it, 0) == 0 && (it.st_mode & 0777) == 0444 && it.st_size == 2);
    assert_int_equal(file_give(root, "answer", 0444, slice_from_str("x"), &fail), -EEXIST);
    assert_non_null(strstr(fail.text, "/run/sluice: answer: "));
}

static void a_part_is_read_up_to_the_end(void **state)
{
    struct fail fail = {0};
    AUTO_BUFFER read = {0};
    (void)state;
    assert_int_equal(file_give(root, "f", 0644, slice_from_str("abcdef"), &fail), 0);
    AUTO_CLOSE int file = openat(root, "f", O_RDONLY | O_CLOEXEC);
    assert_int_equal(evaluator_file_read(file, 1, 2, &read, &fail), 0);
    assert_int_equal(evaluator_file_read(file, 4, 100, &read, &fail), 0);
    assert_true(slice_is(buffer_peek(&read), "bcef"));
}

static void what_cannot_be_read_is_no_empty_file(void **state)
{
    struct fail fail = {0};
    AUTO_BUFFER read = {0};
    (void)state;
    assert_int_equal(evaluator_file_read(root, 0, 10, &read, &fail), -EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_given_can_be_read_inside_whatever_our_umask),
        TEST(a_part_is_read_up_to_the_end),
        TEST(what_cannot_be_read_is_no_empty_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
