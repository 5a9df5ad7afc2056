#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/digest/digest.h"
#include "common/base/utf8.h"
#include "schemas/tokenizer_sample.h"

/* The sample and what is made of it are kept in trajectories: neither may change. */

static void the_sample_is_text_without_special_tokens(void **state)
{
    (void)state;
    struct slice sample = slice_from_str(tokenizer_sample);
    assert_true(utf8_is_valid(sample) && sample.len > 500 && sample.len < 4096);
    assert_null(strstr(tokenizer_sample, "<|"));
    assert_null(strstr(tokenizer_sample, "<s>"));
}

static void the_python_client_makes_the_same_digest_of_the_same_ids(void **state)
{
    (void)state;
    char digest[DIGEST_SIZE], line[128] = "", command[4096];
    uint32_t ids[4096];
    size_t count = strlen(tokenizer_sample);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint8_t)tokenizer_sample[i];
    assert_true(digest_of(slice_of(ids, count * sizeof(*ids)), digest));
    assert_string_equal(digest, "sha256:7525ab1199d26605fa23de62b676527f12eff5a16a139f447340ad746bf09ead");
    assert_non_null(getenv("SLUICE_SOURCE_DIR"));
    snprintf(command, sizeof(command),
             "/usr/bin/python3 -c 'import runpy, sys\n"
             "print(runpy.run_path(sys.argv[1])[\"tokenizer_digest\"](lambda t: list(t.encode())))' "
             "%s/client/python/sluice/tokenizer.py",
             getenv("SLUICE_SOURCE_DIR"));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof(line), pipe));
    assert_int_equal(pclose(pipe), 0);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sample_is_text_without_special_tokens),
        cmocka_unit_test(the_python_client_makes_the_same_digest_of_the_same_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
