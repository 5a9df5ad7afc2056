/*
 * What Django's runner, which is unittest's, prints: NAME ... ok, with output of the tests in between and around. Its
 * names are those of the line, which may hold more than a name.
 */
#include "workers/evaluators/swe/parse_django.h"

#include "common/base/text.h"

#include <stdlib.h>

#include "workers/evaluators/swe/log_line.h"

static const char equivalent[] = "--version is equivalent to version";

static struct slice before(struct slice line, const char *mark)
{
    const ptrdiff_t at = log_line_find(line, mark);
    return slice_of(line.data, at < 0 ? line.len : (size_t)at);
}

static struct slice without_end(struct slice line, const char *end)
{
    return slice_of(line.data, line.len - strlen(end));
}

/* A migration's line without an end, which the name of a test follows. */
static struct slice after_migration(struct slice line)
{
    if (!log_line_starts(line, "Applying sites.0002_alter_domain_unique...test_no_migrations"))
        return line;
    return text_strip(slice_from(line, (size_t)log_line_find(line, "...") + 3));
}

static struct slice read_passed(struct slice line, struct test_log *ret)
{
    static const char *const ends[] = {" ... ok", " ... OK", " ...  OK"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (log_line_ends(line, ends[i])) {
            line = after_migration(line);
            test_log_put(ret, without_end(line, ends[i]), LOG_PASSED);
            return line;
        }
    return line;
}

static void read_headline(struct slice line, const char *mark, enum log_status status, struct test_log *ret)
{
    if (!log_line_starts(line, mark))
        return;
    log_line_word(&line);
    const struct slice name = log_line_word(&line);
    if (name.len > 0)
        test_log_put(ret, name, status);
}

static void read_line(struct slice line, struct slice *last, struct test_log *ret)
{
    if (log_line_find(line, equivalent) >= 0)
        test_log_put(ret, slice_from_str(equivalent), LOG_PASSED);
    if (log_line_find(line, " ... ") >= 0)
        *last = before(line, " ... ");
    line = read_passed(line, ret);
    if (log_line_find(line, " ... skipped") >= 0)
        test_log_put(ret, before(line, " ... skipped"), LOG_SKIPPED);
    if (log_line_ends(line, " ... FAIL"))
        test_log_put(ret, before(line, " ... FAIL"), LOG_FAILED);
    read_headline(line, "FAIL:", LOG_FAILED, ret);
    if (log_line_ends(line, " ... ERROR"))
        test_log_put(ret, before(line, " ... ERROR"), LOG_ERROR);
    read_headline(line, "ERROR:", LOG_ERROR, ret);
    if (log_line_starts(line, "ok") && last->data)
        test_log_put(ret, *last, LOG_PASSED);
}

/* ---- results on a line of their own ------------------------------------------------------------- */

static bool line_behind_is_ok(struct slice rest)
{
    struct slice next;
    return log_line_next(&rest, &next) && slice_is(next, "ok");
}

/* Takes what stands up to a line that ends so off *rest, and "ok" behind it; false: there is no more such. */
static bool skip_to_ok_behind(struct slice *rest, struct slice line, const char *end)
{
    do
        if (log_line_ends(line, end) && line_behind_is_ok(*rest)) {
            log_line_next(rest, &line);
            return true;
        }
    while (log_line_next(rest, &line));
    return false;
}

/* NAME ... MARK ... END, which may be lines later, and then "ok". */
static void read_spanning(struct slice text, const char *mark, const char *end, struct test_log *ret)
{
    for (struct slice line; log_line_next(&text, &line);) {
        const ptrdiff_t at = log_line_find(line, mark);
        if (at < 0)
            continue;
        if (!skip_to_ok_behind(&text, slice_from(line, (size_t)at + strlen(mark)), end))
            return;
        test_log_put(ret, slice_of(line.data, (size_t)at), LOG_PASSED);
    }
}

/* NAME ... MARK ... END on one line, and "ok" on the next. */
static void read_beside(struct slice text, const char *mark, const char *end, struct test_log *ret)
{
    for (struct slice line; log_line_next(&text, &line);) {
        const ptrdiff_t at = log_line_find(line, mark);
        if (at < 0 || (size_t)at + strlen(mark) + strlen(end) > line.len || !log_line_ends(line, end) ||
            !line_behind_is_ok(text))
            continue;
        test_log_put(ret, slice_of(line.data, (size_t)at), LOG_PASSED);
        log_line_next(&text, &line);
    }
}

void parse_django(struct slice text, struct test_log *ret)
{
    struct slice rest = text, last = slice_of(NULL, 0);
    for (struct slice line; log_line_next(&rest, &line);)
        read_line(text_strip(line), &last, ret);
    read_spanning(text, " ... Testing against Django installed in ", " silenced).", ret);
    read_beside(text, " ... Internal Server Error: /", "/", ret);
    read_beside(text, " ... System check identified no issues (0 silenced)", "", ret);
}

int64_t total_of_unittest(struct slice text)
{
    int64_t total = -1;
    for (struct slice line; log_line_next(&text, &line);)
        if (log_line_starts(line, "Ran ") && log_line_find(line, " test") > 0) {
            char number[24] = "";
            const struct slice digits = slice_from(line, 4);
            memcpy(number, digits.data, digits.len < sizeof(number) ? digits.len : sizeof(number) - 1);
            const int64_t ran = strtoll(number, NULL, 10);
            total = (ran < INT32_MAX ? ran : INT32_MAX) + (total > 0 ? total : 0);
        }
    return total;
}
