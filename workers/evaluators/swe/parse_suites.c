/* Runners whose results take more than a line: sympy, Maven, Gradle, Karma, PHPUnit. */
#include "workers/evaluators/swe/parse_suites.h"

#include "common/base/text.h"

#include <stdio.h>
#include <stdlib.h>

#include "workers/evaluators/swe/log_line.h"

/* ---- sympy: "____ FILE.py:TEST ____" over each failure; "test_NAME ok", F, E ---------------------- */

static ptrdiff_t last_of(struct slice line, const char *what)
{
    const uint8_t *found = text_find_last(line, what);
    return found ? found - line.data : -1;
}

static void read_failure(struct slice line, struct test_log *ret)
{
    const ptrdiff_t begin = log_line_find(line, " "), end = last_of(line, " ");
    if (begin < 0 || end <= begin)
        return;
    const struct slice name = slice_of(line.data + begin + 1, (size_t)(end - begin - 1));
    if (log_line_find(name, ".py:") >= 0)
        test_log_put(ret, name, LOG_FAILED);
}

void parse_sympy(struct slice text, struct test_log *ret)
{
    static const struct {
        const char *end;
        enum log_status status;
    } rows[] = {{" E", LOG_ERROR}, {" F", LOG_FAILED}, {" ok", LOG_PASSED}};
    struct slice rest = text;
    for (struct slice line; log_line_next(&rest, &line);)
        read_failure(line, ret);
    for (struct slice line; log_line_next(&text, &line);) {
        line = text_strip(line);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && log_line_starts(line, "test_"); i++)
            if (log_line_ends(line, rows[i].end)) {
                struct slice words = line;
                test_log_put(ret, log_line_word(&words), rows[i].status);
            }
    }
}

/* ---- Maven: each test is a command of its own, and BUILD says how it ended ------------------------ */

struct queue { /* first in, first out */
    struct slice *items;
    size_t first, count, capacity;
};

static bool queue_push(struct queue *queue, struct slice item)
{
    if (queue->count == queue->capacity) {
        const size_t capacity = queue->capacity ? 2 * queue->capacity : 64;
        struct slice *items = capacity > TEST_LOG_MAX ? NULL : realloc(queue->items, capacity * sizeof(*items));
        if (!items)
            return false;
        queue->items = items;
        queue->capacity = capacity;
    }
    queue->items[queue->count++] = item;
    return true;
}

static void put_result(struct slice name, struct slice result, struct test_log *ret)
{
    test_log_put(ret, name, slice_is(result, "SUCCESS") ? LOG_PASSED : LOG_FAILED);
}

void parse_maven(struct slice text, struct test_log *ret)
{
    struct queue tests = {0}, results = {0};
    bool good = true;
    for (struct slice line; good && log_line_next(&text, &line);) {
        line = text_strip(line);
        ptrdiff_t at = last_of(line, "-Dtest=");
        struct slice name = at < 0 ? slice_of(NULL, 0) : slice_from(line, (size_t)at + strlen("-Dtest="));
        if (name.len > 0 && text_strip(name).data == name.data)
            good = queue_push(&tests, log_line_word(&name));
        if (!log_line_ends(line, "BUILD SUCCESS") && !log_line_ends(line, "BUILD FAILURE"))
            continue;
        const struct slice result = slice_from(line, line.len - strlen("SUCCESS"));
        if (tests.first < tests.count)
            put_result(tests.items[tests.first++], result, ret);
        else
            good = good && queue_push(&results, result);
    }
    while (tests.first < tests.count && results.first < results.count) /* results that came before their tests */
        put_result(tests.items[tests.first++], results.items[results.first++], ret);
    ret->has_overflown |= !good;
    free(tests.items);
    free(results.items);
}

/* ---- Gradle: "CLASS > TEST PASSED", which other output may break in two ------------------------------ */

/* "CLASS > TEST" and nothing more. */
static bool is_gradle_name(struct slice line)
{
    const struct slice first = log_line_word(&line), mark = log_line_word(&line), second = log_line_word(&line);
    return first.len > 0 && first.data[0] != '>' && slice_is(mark, ">") && second.len > 0 &&
           log_line_word(&line).len == 0;
}

void parse_gradle(struct slice text, struct test_log *ret)
{
    struct slice pending = slice_of(NULL, 0);
    for (struct slice line; log_line_next(&text, &line);) {
        struct slice name;
        line = text_strip(line);
        const struct slice last = log_line_last_word(line, &name);
        const bool is_result = slice_is(last, "PASSED") || slice_is(last, "FAILED");
        const struct slice whole = slice_of(line.data, line.len > last.len + 1 ? line.len - last.len - 1 : 0);
        if (is_result && name.len > 0 && whole.len >= 2 && line.data[0] != '>') {
            test_log_put(ret, whole, log_status_parse(last));
            pending = slice_of(NULL, 0);
        } else if (is_gradle_name(line))
            pending = line;
        else if (is_result && name.len == 0 && pending.len > 0 && line.len == last.len) {
            test_log_put(ret, pending, log_status_parse(last));
            pending = slice_of(NULL, 0);
        }
    }
}

/* ---- Karma: suites by their indents, and a mark before each test ------------------------------------- */

enum { SUITES_MAX = 64 };

struct suites {
    struct slice names[SUITES_MAX];
    size_t count;
    ptrdiff_t indent;
};

/* "SUITE > SUITE > TEST"; false: it is longer than names are. */
static bool name_in(const struct suites *suites, struct slice test, char out[static TEST_LOG_NAME_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < suites->count && len < TEST_LOG_NAME_MAX; i++)
        len += (size_t)snprintf(out + len, TEST_LOG_NAME_MAX - len, "%.*s > ", SLICE_ARG(suites->names[i]));
    if (len < TEST_LOG_NAME_MAX)
        len += (size_t)snprintf(out + len, TEST_LOG_NAME_MAX - len, "%.*s", SLICE_ARG(test));
    return len < TEST_LOG_NAME_MAX;
}

static void read_suite(struct suites *suites, ptrdiff_t indent, struct slice name)
{
    if (indent > suites->indent && suites->count < SUITES_MAX)
        suites->names[suites->count++] = name;
    else if (indent < suites->indent && suites->count > 0)
        suites->count--;
    if (indent != suites->indent)
        suites->indent = indent;
}

static void read_karma(struct slice line, struct suites *suites, struct test_log *ret)
{
    static const char passed[] = "✔", failed[] = "✖";
    char name[TEST_LOG_NAME_MAX];
    size_t indent = 0;
    while (indent < line.len && (line.data[indent] == ' ' || line.data[indent] == '\t'))
        indent++;
    const struct slice rest = slice_from(line, indent);
    const bool is_passed = log_line_starts(rest, passed);
    if (is_passed || log_line_starts(rest, failed)) {
        const struct slice test = slice_from(rest, strlen(passed));
        if (test.len > 0 && (test.data[0] == ' ' || test.data[0] == '\t') && name_in(suites, slice_from(test, 1), name))
            test_log_put(ret, slice_from_str(name), is_passed ? LOG_PASSED : LOG_FAILED);
    } else if (indent > 1)
        read_suite(suites, (ptrdiff_t)indent - 1, rest);
}

void parse_karma(struct slice text, struct test_log *ret)
{
    struct suites suites = {.indent = -1};
    bool has_begun = false;
    for (struct slice line; log_line_next(&text, &line);) {
        if (log_line_starts(line, "SUMMARY:"))
            return;
        if (log_line_find(line, "Starting browser") >= 0)
            has_begun = true;
        else if (has_begun)
            read_karma(line, &suites, ret);
    }
}

/* ---- PHPUnit --testdox: "Suite (Class)", then a mark before each test ----------------------------------- */

/* Bytes above 0x7f are of letters, but for 0xe2, with which marks and punctuation begin. */
static bool is_word(uint8_t c)
{
    return (c >= 0x80 && c != 0xe2) || c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_suite(struct slice line, struct slice *ret)
{
    if (line.len < 2 || line.data[line.len - 1] != ')' || !is_word(line.data[0]))
        return false;
    const ptrdiff_t at = last_of(slice_of(line.data, line.len - 2), " (");
    *ret = slice_of(line.data, at < 0 ? 0 : (size_t)at);
    return at >= 2;
}

void parse_phpunit(struct slice text, struct test_log *ret)
{
    static const struct {
        const char *mark;
        enum log_status status;
    } rows[] = {{"✔", LOG_PASSED}, {"✘", LOG_FAILED}, {"↩", LOG_SKIPPED}};
    char name[TEST_LOG_NAME_MAX];
    struct slice suite = slice_from_str("None");
    for (struct slice line, found; log_line_next(&text, &line);) {
        if (is_suite(line, &found)) {
            suite = found;
            continue;
        }
        line = text_strip(line);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
            if (log_line_starts(line, rows[i].mark)) {
                const struct slice test = text_strip(slice_from(line, strlen(rows[i].mark)));
                if (snprintf(name, sizeof(name), "%.*s > %.*s", SLICE_ARG(suite), SLICE_ARG(test)) < (int)sizeof(name))
                    test_log_put(ret, slice_from_str(name), rows[i].status);
            }
    }
}
