#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"

/* FIPS 180-2, appendix B.1 */
static const char abc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void the_digest_is_the_standards(void **state)
{
    (void)state;
    char digest[DIGEST_SIZE];
    assert_true(digest_of(slice_from_str("abc"), digest));
    assert_string_equal(digest, abc);
    assert_true(digest_is_valid(digest));
}

static void a_file_has_the_digest_of_its_bytes(void **state)
{
    (void)state;
    AUTO_FCLOSE FILE *file = tmpfile();
    char digest[DIGEST_SIZE];
    assert_non_null(file);
    assert_true(fputs("abc", file) >= 0);
    rewind(file);
    assert_true(digest_of_file(fileno(file), digest));
    assert_string_equal(digest, abc);
}

static void other_words_are_not_digests(void **state)
{
    (void)state;
    assert_false(digest_is_valid(""));
    assert_false(digest_is_valid("sha256:12"));
    assert_false(digest_is_valid(abc + 1));
    assert_false(digest_is_valid("sha256:../../../../etc/passwd0000000000000000000000000000000000000000000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_is_the_standards),
        cmocka_unit_test(a_file_has_the_digest_of_its_bytes),
        cmocka_unit_test(other_words_are_not_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
