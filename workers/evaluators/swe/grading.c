#include "workers/evaluators/swe/grading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISSING = LOG_STATUS_COUNT, STEPS_MAX = 50000000 };

struct grading {
    const struct task_swe *swe;
    const struct test_log *log, *witness;
    struct verdict *verdict;
    struct swe_grade *grade;
    size_t steps; /* of looking for cut names, in all */
};

/* ---- how a test is in a log ----------------------------------------------------------------------- */

static bool is_cut(const char *name)
{
    size_t open = 0, closed = 0;
    for (; *name; name++) {
        open += *name == '[';
        closed += *name == ']';
    }
    return open > closed;
}

static bool is_pass(unsigned status) { return status == LOG_PASSED || status == LOG_XFAIL; }

/* The status of the first of those that begin so, if all passed or none did. */
static unsigned status_of_cut(struct grading *grading, const struct test_log *log, const char *name)
{
    size_t first, passed = 0;
    const size_t count = test_log_range(log, slice_from_str(name), &first);
    const struct logged_test *earliest = NULL;
    grading->steps += count;
    if (count == 0 || grading->steps > STEPS_MAX)
        return MISSING;
    for (size_t i = first; i < first + count; i++) {
        const struct logged_test *test = log->tests[i];
        passed += is_pass(test->status);
        if (!earliest || test->order < earliest->order)
            earliest = test;
    }
    return passed == 0 || passed == count ? earliest->status : (unsigned)MISSING;
}

static unsigned status_in(struct grading *grading, const struct test_log *log, const char *name)
{
    const struct logged_test *test = test_log_find(log, slice_from_str(name));
    if (test)
        return test->status;
    return is_cut(name) && strcmp(grading->swe->eval_type, "fail_only") != 0 ? status_of_cut(grading, log, name)
                                                                             : (unsigned)MISSING;
}

static bool is_good(const struct grading *grading, bool must_pass, unsigned status)
{
    if (strcmp(grading->swe->eval_type, "fail_only") == 0)
        return status != LOG_FAILED;
    return is_pass(status) || (!must_pass && status == LOG_SKIPPED);
}

/* ---- one test ---------------------------------------------------------------------------------- */

static const char *words_of(unsigned status)
{
    return status == MISSING ? "is missing" : log_status_word((enum log_status)status);
}

static enum test_status shown(bool good, unsigned status)
{
    return good ? status == LOG_SKIPPED ? TEST_SKIPPED : TEST_PASSED : status == LOG_ERROR ? TEST_ERROR : TEST_FAILED;
}

static void tell(struct grading *grading, const char *list, const char *name, bool good, unsigned status,
                 const char *words)
{
    char message[128];
    snprintf(message, sizeof(message), good ? "%s" : "%s: %s", list, words);
    verdict_add_test(grading->verdict, name, shown(good, status), message, NULL, NULL);
    if (!good && !grading->grade->first[0])
        snprintf(grading->grade->first, sizeof(grading->grade->first), "%.300s %s", name, words);
}

static bool grade_test(struct grading *grading, const char *list, const char *name, bool must_pass)
{
    char words[96];
    const unsigned status = status_in(grading, grading->log, name);
    bool good = is_good(grading, must_pass, status);
    snprintf(words, sizeof(words), "%s", words_of(status));
    if (good && grading->witness) {
        const unsigned seen = status_in(grading, grading->witness, name);
        good = is_good(grading, must_pass, seen);
        snprintf(words, sizeof(words), "%s in the log, and for pytest it %s", words_of(status),
                 seen == MISSING ? "did not run" : words_of(seen));
    }
    tell(grading, list, name, good, status, words);
    return good;
}

/* ---- all of them ------------------------------------------------------------------------------------ */

static size_t grade_list(struct grading *grading, const char *list, const char *const *names, size_t count,
                         bool must_pass)
{
    size_t good = 0;
    for (size_t i = 0; i < count; i++)
        good += grade_test(grading, list, names[i], must_pass);
    return good;
}

static bool is_expected(struct grading *grading, const char *row)
{
    const char *tab = strrchr(row, '\t');
    char *name = strndup(row, (size_t)(tab - row));
    const enum log_status wanted = log_status_parse(slice_from_str(tab + 1));
    const unsigned status = name ? status_in(grading, grading->log, name) : (unsigned)MISSING;
    const unsigned seen = name && grading->witness ? status_in(grading, grading->witness, name) : status;
    const bool good = status == wanted && seen == wanted;
    if (name && *name)
        tell(grading, "expected", name, good, status, words_of(status == wanted ? seen : status));
    free(name);
    return good;
}

static void grade_expected(struct grading *grading)
{
    struct swe_grade *grade = grading->grade;
    grade->fail_to_pass = grading->swe->expected_count;
    for (size_t i = 0; i < grading->swe->expected_count; i++)
        grade->fail_to_pass_good += is_expected(grading, grading->swe->expected[i]);
    grade->is_resolved = grade->fail_to_pass_good == grade->fail_to_pass && grading->log->count == grade->fail_to_pass;
    if (!grade->is_resolved && !grade->first[0])
        snprintf(grade->first, sizeof(grade->first), "there are %zu tests, and %zu are expected", grading->log->count,
                 grade->fail_to_pass);
}

void swe_grade(const struct task_swe *swe, struct test_log *log, struct test_log *witness, struct verdict *verdict,
               struct swe_grade *ret)
{
    *ret = (struct swe_grade){.fail_to_pass = swe->fail_to_pass_count, .pass_to_pass = swe->pass_to_pass_count};
    struct grading grading = {.swe = swe, .log = log, .witness = witness, .verdict = verdict, .grade = ret};
    test_log_sort(log);
    if (witness)
        test_log_sort(witness);
    if (swe->expected) {
        grade_expected(&grading);
        return;
    }
    ret->fail_to_pass_good = grade_list(&grading, "fail_to_pass", swe->fail_to_pass, swe->fail_to_pass_count, true);
    ret->pass_to_pass_good = grade_list(&grading, "pass_to_pass", swe->pass_to_pass, swe->pass_to_pass_count, false);
    ret->is_resolved = ret->fail_to_pass_good == ret->fail_to_pass && ret->pass_to_pass_good == ret->pass_to_pass;
}
