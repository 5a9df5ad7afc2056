#include "workers/evaluators/swe/test_log.h"

#include <stdlib.h>

static const char *const words[LOG_STATUS_COUNT] = {
    [LOG_PASSED] = "PASSED",   [LOG_FAILED] = "FAILED", [LOG_ERROR] = "ERROR",
    [LOG_SKIPPED] = "SKIPPED", [LOG_XFAIL] = "XFAIL",   [LOG_OTHER] = "OTHER"};

const char *log_status_word(enum log_status status) { return words[status]; }

enum log_status log_status_parse(struct slice word)
{
    for (unsigned i = 0; i < LOG_OTHER; i++)
        if (slice_is(word, words[i]))
            return (enum log_status)i;
    return LOG_OTHER;
}

void test_log_finish(struct test_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        free(log->tests[i]->name);
        free(log->tests[i]);
    }
    free(log->tests);
    table_finish(&log->by_name);
    *log = (struct test_log){.count = 0};
}

static bool grow(struct test_log *log)
{
    if (log->count < log->capacity)
        return true;
    const size_t capacity = log->capacity ? 2 * log->capacity : 256;
    struct logged_test **tests = realloc(log->tests, capacity * sizeof(struct logged_test *));
    if (!tests)
        return false;
    log->tests = tests;
    log->capacity = capacity;
    return true;
}

static bool add(struct test_log *log, struct slice name, enum log_status status)
{
    if (log->count >= TEST_LOG_MAX || log->bytes + name.len > TEST_LOG_BYTES_MAX || !grow(log))
        return false;
    struct logged_test *test = malloc(sizeof(*test));
    char *copy = strndup((const char *)name.data, name.len);
    if (test && copy) {
        *test = (struct logged_test){.name = copy, .status = status, .order = log->count};
        if (table_put(&log->by_name, slice_of(copy, name.len), test)) {
            log->tests[log->count++] = test;
            log->bytes += name.len;
            return true;
        }
    }
    free(copy);
    free(test);
    return false;
}

void test_log_put(struct test_log *log, struct slice name, enum log_status status)
{
    log->has_failures |= status == LOG_FAILED || status == LOG_ERROR;
    if (name.len > TEST_LOG_NAME_MAX || log->has_overflown || (name.len > 0 && memchr(name.data, 0, name.len)))
        return;
    struct logged_test *known = table_find(&log->by_name, name);
    if (known)
        known->status = status;
    else
        log->has_overflown = !add(log, name, status);
}

const struct logged_test *test_log_find(const struct test_log *log, struct slice name)
{
    return table_find(&log->by_name, name);
}

/* ---- by name ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    return strcmp((*(struct logged_test *const *)a)->name, (*(struct logged_test *const *)b)->name);
}

void test_log_sort(struct test_log *log)
{
    if (log->count > 0)
        qsort(log->tests, log->count, sizeof(struct logged_test *), compare);
}

/* The first whose name is not before the prefix, or behind all that begin with it. */
static size_t bound(const struct test_log *log, struct slice prefix, bool behind)
{
    size_t low = 0, high = log->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strncmp(log->tests[middle]->name, (const char *)prefix.data, prefix.len);
        if (order < 0 || (behind && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t test_log_range(const struct test_log *log, struct slice prefix, size_t *first)
{
    *first = bound(log, prefix, false);
    return bound(log, prefix, true) - *first;
}
