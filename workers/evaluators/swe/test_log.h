/*
 * test_log.h - what a log says of tests: names with a status each, the last that was said counting, as SWE-bench has
 * it. Names are copied. Bounded, whatever a program prints: beyond TEST_LOG_MAX names or TEST_LOG_BYTES_MAX bytes of
 * them, the log has overflown and settles nothing; a name longer than TEST_LOG_NAME_MAX, which no task can have, is not
 * kept.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_TEST_LOG_H
#define SLUICE_WORKERS_EVALUATORS_SWE_TEST_LOG_H

#include "common/base/buffer.h"
#include "common/containers/table.h"

enum { TEST_LOG_MAX = 1 << 18, TEST_LOG_BYTES_MAX = 64 << 20, TEST_LOG_NAME_MAX = 4096 };

/* Words of pytest's, which all parsers' results are said in. OTHER: a word that is none of them. */
enum log_status { LOG_PASSED, LOG_FAILED, LOG_ERROR, LOG_SKIPPED, LOG_XFAIL, LOG_OTHER, LOG_STATUS_COUNT };

const char *log_status_word(enum log_status status); /* "PASSED"; "OTHER" */
enum log_status log_status_parse(struct slice word);

struct logged_test {
    char *name;
    enum log_status status;
    size_t order; /* of its first mention */
};

struct test_log {
    struct table by_name;
    struct logged_test **tests; /* in the order of their first mentions, until test_log_sort */
    size_t count, capacity, bytes;
    bool has_failures;  /* FAILED or ERROR was said of some test, also of one that is not kept */
    bool has_overflown; /* or memory is out */
};

#define AUTO_TEST_LOG __attribute__((cleanup(test_log_finish))) struct test_log

void test_log_finish(struct test_log *log); /* all zero again */
void test_log_put(struct test_log *log, struct slice name, enum log_status status);
const struct logged_test *test_log_find(const struct test_log *log, struct slice name);

/* By name, so that test_log_range may be asked; nothing is put in any more. */
void test_log_sort(struct test_log *log);
/* The tests [*first, *first + count) whose names begin so. */
size_t test_log_range(const struct test_log *log, struct slice prefix, size_t *first);

#endif
