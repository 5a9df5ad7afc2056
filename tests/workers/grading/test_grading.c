/* sluice-grade: one verdict as a sentence, rows as lines of JSON, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "workers/grading/grading.h"

static const struct grading_options preset = {.extract = "auto", .normalize = "blanks"};

/* What is printed, as the caller's to free. */
static char *run(const struct grading_options *options, const char *kind, enum grading_status wanted)
{
    char *printed = NULL;
    size_t size;
    struct grade_options how;
    const char *why = NULL;
    if (!grading_read(options, kind, &how, &why))
        fail_msg("%s", why);
    FILE *out = open_memstream(&printed, &size);
    assert_non_null(out);
    assert_int_equal(grading_run(options, &how, out), wanted);
    fclose(out);
    return printed;
}

static void one_answer_is_one_sentence(void **state)
{
    (void)state;
    struct grading_options options = preset;
    options.answer = (struct texts){.items = {"\\frac12", "7"}, .count = 2};
    options.text = "so \\boxed{0.5}";
    AUTO_FREE char *right = run(&options, "math", GRADING_RIGHT);
    assert_string_equal(right, "right: 0.5 equals \\frac12\n");
    options.text = "so \\boxed{5}";
    AUTO_FREE char *wrong = run(&options, "math", GRADING_WRONG);
    assert_string_equal(wrong, "wrong: 5 does not equal \\frac12, or any other accepted\n");
    options.text = "hm";
    options.json = true;
    AUTO_FREE char *none = run(&options, "math", GRADING_WRONG);
    assert_string_equal(none, "{\"right\":false,\"answer\":null,\"why\":\"no \\\\boxed{} in the answer\"}\n");
}

static void each_row_is_a_line_also_one_that_is_none(void **state)
{
    (void)state;
    static const char rows[] = "\xef\xbb\xbf{\"text\":\"(B)\",\"answer\":\"B\"}\n"
                               "\n"
                               "{\"text\":\"(B)\",\"answers\":[\"A\",\"C\"]}\n"
                               "{\"answer\":\"B\"}\n"
                               "nonsense\n"
                               "{\"text\":\"(B)\",\"answers\":[1]}\n"
                               "{\"text\":\"(B)\",\"answers\":[]}\n"
                               "{\"text\":\"(B)\",\"answer\":\"Paris\"}\n"
                               "{\"text\":\"(B)\",\"answer\":\"B\"}";
    char path[] = "/tmp/sluice-rows-XXXXXX";
    AUTO_CLOSE int file = mkstemp(path);
    assert_true(file >= 0 && write(file, rows, sizeof(rows) - 1) == (ssize_t)sizeof(rows) - 1);
    struct grading_options options = preset;
    options.rows = path;
    AUTO_FREE char *printed = run(&options, "choice", GRADING_UNREAD);
    assert_string_equal(printed,
                        "{\"right\":true,\"answer\":\"(B)\",\"why\":\"(B) is B\"}\n"
                        "{\"right\":false,\"answer\":\"(B)\",\"why\":\"(B) is not A, or any other accepted\"}\n"
                        "{\"error\":\"it has no text\"}\n"
                        "{\"error\":\"it is not a JSON object\"}\n"
                        "{\"error\":\"one of its answers is not a string\"}\n"
                        "{\"error\":\"no accepted answer\"}\n"
                        "{\"error\":\"an accepted answer is neither the letter of a choice nor several\"}\n"
                        "{\"right\":true,\"answer\":\"(B)\",\"why\":\"(B) is B\"}\n");
    unlink(path);
    options.rows = "/nowhere/rows.jsonl";
    AUTO_FREE char *nothing = run(&options, "choice", GRADING_UNREAD);
    assert_string_equal(nothing, "");
}

static void options_of_a_choice_are_given_once_or_by_each_row(void **state)
{
    (void)state;
    static const char rows[] = "{\"text\":\"Lyon\",\"answer\":\"A\",\"options\":{\"A\":\"Lyon\",\"B\":\"Paris\"}}\n"
                               "{\"text\":\"Lyon\",\"answer\":\"A\"}\n"
                               "{\"text\":\"Lyon\",\"answer\":\"C\",\"options\":{\"A\":\"Lyon\",\"B\":\"Paris\"}}\n"
                               "{\"text\":\"Lyon\",\"answer\":\"A\",\"options\":[\"Lyon\"]}\n";
    char path[] = "/tmp/sluice-rows-XXXXXX";
    AUTO_CLOSE int file = mkstemp(path);
    assert_true(file >= 0 && write(file, rows, sizeof(rows) - 1) == (ssize_t)sizeof(rows) - 1);
    struct grading_options options = preset;
    options.rows = path;
    AUTO_FREE char *printed = run(&options, "choice", GRADING_UNREAD);
    assert_string_equal(printed, "{\"right\":true,\"answer\":\"Lyon\",\"why\":\"Lyon is the text of A\"}\n"
                                 "{\"right\":false,\"answer\":\"Lyon\",\"why\":\"Lyon is not A\"}\n"
                                 "{\"error\":\"an accepted answer is a letter that none of the options has\"}\n"
                                 "{\"error\":\"its options are not an object of letters, A to Z, and texts\"}\n");
    unlink(path);
    struct grading_options one = preset;
    one.answer = (struct texts){.items = {"B"}, .count = 1};
    one.option = (struct texts){.items = {"A=Lyon", "B=Paris"}, .count = 2};
    one.text = "\\boxed{\\text{paris}}";
    AUTO_FREE char *right = run(&one, "choice", GRADING_RIGHT);
    assert_string_equal(right, "right: \\text{paris} is the text of B\n");
}

static void assert_refused(struct grading_options options, const char *kind, const char *part)
{
    struct grade_options how;
    const char *why;
    assert_false(grading_read(&options, kind, &how, &why));
    if (!strstr(why, part))
        fail_msg("%s says nothing of %s", why, part);
}

static void rows_that_cannot_be_read_are_no_verdict(void **state)
{
    (void)state;
    struct grading_options options = preset;
    struct grade_options how = {.kind = GRADE_MATH};
    options.rows = "/";
    AUTO_FCLOSE FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    assert_int_equal(grading_run(&options, &how, out), GRADING_UNREAD);
    options.rows = "/no/such/file";
    assert_int_equal(grading_run(&options, &how, out), GRADING_UNREAD);
}

static void what_is_not_known_or_missing_is_refused_by_name(void **state)
{
    (void)state;
    struct grading_options good = preset, bad;
    good.answer = (struct texts){.items = {"A"}, .count = 1};
    good.text = "A";
    assert_refused(good, "poetry", "math, choice or exact");
    bad = good;
    bad.extract = "guess";
    assert_refused(bad, "math", "--extract");
    bad = good;
    bad.normalize = "all";
    assert_refused(bad, "exact", "--normalize");
    bad = good;
    bad.text = NULL;
    assert_refused(bad, "math", "--text");
    bad = good;
    bad.rows = "-";
    assert_refused(bad, "math", "--rows");
    bad = good;
    bad.answer.items[0] = "Paris";
    assert_refused(bad, "choice", "letter");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_answer_is_one_sentence),
        cmocka_unit_test(each_row_is_a_line_also_one_that_is_none),
        cmocka_unit_test(options_of_a_choice_are_given_once_or_by_each_row),
        cmocka_unit_test(rows_that_cannot_be_read_are_no_verdict),
        cmocka_unit_test(what_is_not_known_or_missing_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("grading", tests, NULL, NULL);
}
