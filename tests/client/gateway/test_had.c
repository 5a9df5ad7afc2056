/* Names of answers that were had: what a full disk, a kill or a stranger left in the file hides no other name. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/gateway/runs/had.h"

static char path[] = "/tmp/sluice-had-XXXXXX";

static struct had *opened(void)
{
    struct fail fail;
    struct had *had = had_open(path, &fail);
    if (!had)
        fail_msg("%s", fail.text);
    return had;
}

static void write_file(const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void check_known(const char *const *names, size_t count)
{
    struct had *had = opened();
    for (size_t i = 0; i < count; i++)
        if (!had_has(had, names[i]))
            fail_msg("%s is not known", names[i]);
    had_close(&had);
}

static void names_outlive_the_process(void **state)
{
    static const char *const names[] = {"gym-1-0", "gym-2-0"};
    (void)state;
    write_file("");
    struct had *had = opened();
    for (size_t i = 0; i < 2; i++)
        assert_true(had_add(had, names[i]));
    had_remove(had, "gym-3-0");
    had_close(&had);
    check_known(names, 2);
}

static void a_cut_line_takes_no_other_along(void **state)
{
    static const char *const names[] = {"gym-1-0", "gym-2-0"};
    (void)state;
    write_file("gym-1-0\ngym-9");
    struct had *had = opened();
    assert_false(had_has(had, "gym-9"));
    assert_true(had_add(had, "gym-2-0"));
    had_close(&had);
    check_known(names, 2);
}

static void rubbish_hides_nothing(void **state)
{
    static const char *const names[] = {"gym-1-0", "gym-2-0"};
    char text[2000];
    (void)state;
    snprintf(text, sizeof(text), "gym-1-0\n%01000d\n\n\xff\xfe\ngym-2-0\n", 7);
    write_file(text);
    check_known(names, 2);
}

/* Of the second name half is written. */
static void what_a_full_disk_cut_off_takes_no_other_along(void **state)
{
    static const char *const names[] = {"gym-1-0", "gym-3-0"};
    struct rlimit before, limit;
    (void)state;
    write_file("");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 12, .rlim_max = before.rlim_max};
    struct had *had = opened();
    assert_true(had_add(had, "gym-1-0"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const bool is_added = had_add(had, "gym-2-0");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(is_added);
    assert_true(had_has(had, "gym-2-0"));
    assert_true(had_add(had, "gym-3-0"));
    had_close(&had);
    check_known(names, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_outlive_the_process),
        cmocka_unit_test(a_cut_line_takes_no_other_along),
        cmocka_unit_test(rubbish_hides_nothing),
        cmocka_unit_test(what_a_full_disk_cut_off_takes_no_other_along),
    };
    const int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
