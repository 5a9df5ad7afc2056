/* What pytest -rA prints: STATUS NAME, and of failures " - WHY" behind it; and what others print like it. */
#include "workers/evaluators/swe/parse_pytest.h"

#include <ctype.h>
#include <stdio.h>

#include "workers/evaluators/swe/log_line.h"

static bool starts_with_status(struct slice line)
{
    for (unsigned i = 0; i < LOG_OTHER; i++)
        if (log_line_starts(line, log_status_word((enum log_status)i)))
            return true;
    return false;
}

static bool ends_with_status(struct slice line)
{
    for (unsigned i = 0; i < LOG_OTHER; i++)
        if (log_line_ends(line, log_status_word((enum log_status)i)))
            return true;
    return false;
}

/* "[3]": of a line that counts skipped tests. */
static bool is_count(struct slice name)
{
    if (name.len < 3 || name.data[0] != '[' || name.data[name.len - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < name.len; i++)
        if (!isdigit(name.data[i]))
            return false;
    return true;
}

static bool is_skip_count(struct slice status, struct slice name)
{
    return slice_is(status, "SKIPPED") && is_count(name);
}

/* The second word of a line whose first is a status; empty: it is no test's line. */
static struct slice read_result(struct slice line, struct log_scratch *scratch, enum log_status *ret_status)
{
    if (!starts_with_status(line))
        return slice_of(NULL, 0);
    if (log_line_starts(line, "FAILED"))
        line = log_line_replace(line, " - ", " ", scratch);
    const struct slice status = log_line_word(&line), name = log_line_word(&line);
    *ret_status = log_status_parse(status);
    return is_skip_count(status, name) ? slice_of(NULL, 0) : name;
}

void parse_pytest(struct slice text, struct test_log *ret)
{
    struct log_scratch scratch;
    enum log_status status;
    for (struct slice line; log_line_next(&text, &line);) {
        const struct slice name = read_result(line, &scratch, &status);
        if (name.len > 0)
            test_log_put(ret, name, status);
    }
}

void parse_matplotlib(struct slice text, struct test_log *ret)
{
    struct log_scratch left, right, scratch;
    enum log_status status;
    for (struct slice line; log_line_next(&text, &line);) {
        line = log_line_replace(line, "MouseButton.LEFT", "1", &left);
        line = log_line_replace(line, "MouseButton.RIGHT", "3", &right);
        const struct slice name = read_result(line, &scratch, &status);
        if (name.len > 0)
            test_log_put(ret, name, status);
    }
}

/* ---- parameters that are paths: a[/x/y/z] is a[/z] ------------------------------------------------ */

static struct slice shorten(struct slice name, char out[static LOG_LINE_MAX])
{
    const uint8_t *open = memchr(name.data, '[', name.len), *close = memrchr(name.data, ']', name.len);
    if (!open || !close || close < open)
        return name;
    const struct slice option = slice_of(open + 1, (size_t)(close - open - 1));
    const bool is_path = option.len > 0 && option.data[0] == '/' && !(option.len > 1 && option.data[1] == '/') &&
                         !memchr(option.data, '*', option.len);
    const struct slice kept =
        is_path ? slice_from(option, (size_t)((const uint8_t *)memrchr(option.data, '/', option.len) - option.data))
                : option;
    const int len = snprintf(out, LOG_LINE_MAX, "%.*s[%.*s]", (int)(open - name.data), (const char *)name.data,
                             SLICE_ARG(kept));
    return slice_of(out, (size_t)len);
}

void parse_pytest_options(struct slice text, struct test_log *ret)
{
    char shortened[LOG_LINE_MAX];
    struct log_scratch scratch;
    enum log_status status;
    for (struct slice line; log_line_next(&text, &line);) {
        const struct slice name = read_result(line, &scratch, &status);
        if (name.len > 0)
            test_log_put(ret, shorten(name, shortened), status);
    }
}

/* ---- names with blanks, colours, and NAME STATUS of older versions ---------------------------------- */

/* Bytes of the rest of a colour, "[31m", at `at`; 0: none is there. */
static size_t colour_at(struct slice line, size_t at)
{
    size_t end = at + 1;
    if (line.data[at] != '[')
        return 0;
    while (end < line.len && isdigit(line.data[end]))
        end++;
    return end > at + 1 && end < line.len && line.data[end] == 'm' ? end + 1 - at : 0;
}

static struct slice without_colours(struct slice line, struct log_scratch *scratch)
{
    size_t len = 0;
    for (size_t i = 0; i < line.len;) {
        const size_t colour = colour_at(line, i);
        if (colour == 0 && line.data[i] >= ' ')
            scratch->bytes[len++] = line.data[i];
        i += colour ? colour : 1;
    }
    return slice_of(scratch->bytes, len);
}

/* Words with one blank between. */
static struct slice join(struct slice words, struct log_scratch *scratch)
{
    size_t len = 0;
    for (struct slice word; (word = log_line_word(&words)).len > 0;) {
        if (len > 0)
            scratch->bytes[len++] = ' ';
        memmove(scratch->bytes + len, word.data, word.len);
        len += word.len;
    }
    return slice_of(scratch->bytes, len);
}

static void read_v2(struct slice line, struct test_log *ret)
{
    struct log_scratch joined;
    struct slice status, rest = line;
    if (starts_with_status(line)) {
        const ptrdiff_t why = log_line_starts(line, "FAILED") ? log_line_find(line, " - ") : -1;
        if (why >= 0)
            rest.len = (size_t)why;
        status = log_line_word(&rest);
        struct slice after = rest;
        if (is_skip_count(status, log_line_word(&after)))
            return;
    } else if (ends_with_status(line))
        status = log_line_last_word(line, &rest);
    else
        return;
    const struct slice name = join(rest, &joined);
    if (name.len > 0)
        test_log_put(ret, name, log_status_parse(status));
}

void parse_pytest_v2(struct slice text, struct test_log *ret)
{
    struct log_scratch plain;
    for (struct slice line; log_line_next(&text, &line);)
        read_v2(without_colours(line, &plain), ret);
}

/* ---- R2E-Gym: what stands behind the file, with a dot for "::", of the summary alone ------------------ */

static struct slice dotted(struct slice line, struct log_scratch *scratch)
{
    const ptrdiff_t file = log_line_find(line, "::");
    line = file < 0 ? slice_of(line.data, 0) : slice_from(line, (size_t)file + 2);
    return log_line_replace(line, "::", ".", scratch);
}

static void read_r2e(struct slice line, struct test_log *ret)
{
    static const enum log_status statuses[] = {LOG_PASSED, LOG_FAILED, LOG_ERROR};
    struct log_scratch plain, scratch;
    line = without_colours(line, &plain);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
        if (log_line_find(line, log_status_word(statuses[i])) < 0)
            continue;
        struct slice name = dotted(line, &scratch);
        const ptrdiff_t why = log_line_find(name, " - ");
        test_log_put(ret, slice_of(name.data, why < 0 ? name.len : (size_t)why), statuses[i]);
        return;
    }
}

void parse_r2e(struct slice text, struct test_log *ret)
{
    bool is_summary = false;
    for (struct slice line; log_line_next(&text, &line);)
        if (log_line_find(line, "short test summary info") >= 0) {
            if (is_summary)
                return;
            is_summary = true;
        } else if (is_summary)
            read_r2e(line, ret);
}

/* ---- seaborn: FAILED NAME, NAME PASSED ..., PASSED NAME ------------------------------------------------ */

void parse_seaborn(struct slice text, struct test_log *ret)
{
    for (struct slice line; log_line_next(&text, &line);) {
        struct slice rest = line;
        const struct slice first = log_line_word(&rest), second = log_line_word(&rest);
        if (second.len == 0)
            continue;
        if (log_line_starts(line, "FAILED"))
            test_log_put(ret, second, LOG_FAILED);
        else if (log_line_find(line, " PASSED ") >= 0) {
            if (slice_is(second, "PASSED"))
                test_log_put(ret, first, LOG_PASSED);
        } else if (log_line_starts(line, "PASSED"))
            test_log_put(ret, second, LOG_PASSED);
    }
}
