/*
 * The 256 answers of compmath (nemo-gym 0.4.0, data file compmath_test.jsonl), in the forms in which people publish
 * answers. They are fetched from Python's registry into the build directory (fetch_compmath.py), and not committed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/answers/grade.h"

enum { ANSWERS = 256, SKIPPED = 77 };

static char *answers[ANSWERS];

/* The exit status of the program that fetches; its file's path on success. */
static int fetch(char *ret, size_t size)
{
    AUTO_FREE char *command = NULL;
    assert_true(asprintf(&command, "python3 '%s/tests/workers/evaluators/fetch_compmath.py' '%s/packages'",
                         getenv("SLUICE_SOURCE_DIR"), getenv("SLUICE_BINARY_DIR")) > 0);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    bool any = fgets(ret, (int)size, out);
    ret[strcspn(ret, "\n")] = '\0';
    int status = pclose(out);
    return any && status == 0 ? 0 : WEXITSTATUS(status);
}

static void read_answers(const char *path)
{
    AUTO_FCLOSE FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (size_t i = 0; i < ANSWERS; i++) {
        json_t *row = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
        const char *answer = json_string_value(json_object_get(row, "expected_answer"));
        assert_non_null(answer);
        answers[i] = strdup(answer);
        json_decref(row);
    }
}

static bool is_right(const char *accepted, const char *given)
{
    struct grade_options options = {.kind = GRADE_MATH};
    struct grade grade;
    AUTO_FREE char *text = NULL;
    assert_true(asprintf(&text, "so it is \\boxed{%s}", given) > 0);
    grade_text(&options, slice_from_str(text), &accepted, 1, &grade);
    bool right = grade.is_right;
    grade_finish(&grade);
    return right;
}

static void each_answer_equals_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < ANSWERS; i++)
        if (!is_right(answers[i], answers[i]))
            fail_msg("%s is not itself", answers[i]);
}

/* Without dollars and blanks, and without a full stop at the end. */
static void copy_bare(const char *text, char *ret, size_t size)
{
    size_t len = 0;
    for (; *text && len + 1 < size; text++)
        if (!strchr("$ ", *text))
            ret[len++] = *text;
    len -= len > 1 && ret[len - 1] == '.';
    ret[len] = '\0';
}

static bool are_one_text(const char *a, const char *b)
{
    char left[512], right[512];
    copy_bare(a, left, sizeof(left));
    copy_bare(b, right, sizeof(right));
    return strcmp(left, right) == 0;
}

static void no_two_answers_are_equal_but_those_that_are_one(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < ANSWERS; i++)
        for (size_t k = 0; k < ANSWERS; k++)
            if (is_right(answers[i], answers[k]) != are_one_text(answers[i], answers[k])) {
                print_error("%s and %s\n", answers[i], answers[k]);
                wrong++;
            }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_equals_itself),
        cmocka_unit_test(no_two_answers_are_equal_but_those_that_are_one),
    };
    char path[4096];
    int status = fetch(path, sizeof(path));
    if (status == SKIPPED)
        return SKIPPED; /* fetch_compmath.py says why */
    assert_int_equal(status, 0);
    read_answers(path);
    status = cmocka_run_group_tests_name("compmath", tests, NULL, NULL);
    for (size_t i = 0; i < ANSWERS; i++)
        free(answers[i]);
    return status;
}
