/* What a Dockerfile calls an image, by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workers/images/names.h"

static int strdups_left = -1; /* until memory is short; negative: it is not */

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
    if (strdups_left == 0) {
        errno = ENOMEM;
        return NULL;
    }
    strdups_left -= strdups_left > 0;
    return __real_strdup(text);
}

static void a_name_is_a_path_given_or_one_below_a_listed_directory(void **state)
{
    struct image_list list = {.listed = {(char[]){"/usr"}}, .listed_count = 1};
    struct image_names names = {.list = &list};
    struct fail fail = {0};
    char *path;
    (void)state;
    assert_int_equal(image_names_add(&names, "docker.io/library/debian:12=/images/d.sif", &fail), 0);
    assert_int_equal(image_names_find(&names, "debian:12", &path, &fail), 0);
    assert_string_equal(path, "/images/d.sif");
    free(path);
    assert_int_equal(image_names_find(&names, "library/bin:latest", &path, &fail), 0);
    assert_string_equal(path, "/usr/bin");
    free(path);
    assert_int_equal(image_names_find(&names, "nobody/knows:1", &path, &fail), -EINVAL);
    assert_int_equal(image_names_find(&names, "../etc", &path, &fail), -EINVAL);
    image_names_finish(&names);
}

static void without_memory_no_name_is_called_unknown(void **state)
{
    struct image_list list = {.listed = {(char[]){"/usr"}}, .listed_count = 1};
    const struct image_names names = {.list = &list};
    struct fail fail = {0};
    char *path;
    (void)state;
    for (int left = 0; left < 2; left++) {
        strdups_left = left;
        int code = image_names_find(&names, "nobody/knows:1", &path, &fail);
        strdups_left = -1;
        assert_int_equal(code, -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_a_path_given_or_one_below_a_listed_directory),
        cmocka_unit_test(without_memory_no_name_is_called_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
