#include "workers/evaluators/answers/extract.h"

#include <ctype.h>
#include <strings.h>

#include "common/base/text.h"

static const char box_mark[] = "\\boxed", frame_mark[] = "\\fbox", hashes_mark[] = "####";

bool extract_parse(const char *word, enum extract *ret)
{
    static const char *const words[] = {"auto", "box", "hashes", "answer", "number", "letter", "all"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum extract)i;
            return true;
        }
    return false;
}

/* ---- finding ------------------------------------------------------------------------------------- */

static struct slice slice_after(struct slice text, size_t at) { return slice_of(text.data + at, text.len - at); }

bool extract_after_thinking(struct slice text, struct slice *ret)
{
    static const char close[] = "</think>";
    const uint8_t *closed = text_find_last(text, close);
    *ret = closed ? slice_after(text, (size_t)(closed - text.data) + strlen(close)) : text;
    return !text_find_last(*ret, "<think>");
}

static struct slice line_at(struct slice text, const uint8_t *at)
{
    struct slice rest = slice_after(text, (size_t)(at - text.data));
    const uint8_t *end = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;
    return slice_of(rest.data, end ? (size_t)(end - rest.data) : rest.len);
}

/* ---- boxes ---------------------------------------------------------------------------------------- */

struct box {
    size_t start, end; /* of the whole of \boxed{...} in the text */
    struct slice inside;
};

static size_t skip_blanks(struct slice text, size_t at)
{
    while (at < text.len && isspace(text.data[at]))
        at++;
    return at;
}

/* How long "\boxed" is where one begins: braces follow it, or a number as in \boxed 5. 0: none begins. */
static size_t mark_length(struct slice text, size_t at)
{
    struct slice rest = slice_after(text, at);
    size_t box = strlen(box_mark), frame = strlen(frame_mark), mark = 0;
    if (rest.len > box && memcmp(rest.data, box_mark, box) == 0)
        mark = box;
    else if (rest.len > frame && memcmp(rest.data, frame_mark, frame) == 0)
        mark = frame;
    size_t next = mark ? skip_blanks(rest, mark) : rest.len;
    return next < rest.len && (rest.data[next] == '{' || isdigit(rest.data[next]) || rest.data[next] == '-') ? mark : 0;
}

/* What the braces at `at` hold. \{ and \} are characters of it. */
static bool read_braces(struct slice text, size_t at, struct box *ret)
{
    int depth = 0;
    for (size_t start = at; at < text.len; at++) {
        if (text.data[at] == '\\') {
            at++;
            continue;
        }
        depth += (text.data[at] == '{') - (text.data[at] == '}');
        if (depth == 0) {
            ret->inside = slice_of(text.data + start + 1, at - start - 1);
            ret->end = at + 1;
            return true;
        }
    }
    return false;
}

/* \boxed{...}, or \boxed 5 */
static bool read_box(struct slice text, size_t at, struct box *ret)
{
    size_t mark = mark_length(text, at), open = skip_blanks(text, at + mark);
    ret->start = at;
    if (open < text.len && text.data[open] == '{')
        return read_braces(text, open, ret);
    size_t end = open;
    while (end < text.len && (isalnum(text.data[end]) || strchr(".,-/", text.data[end])))
        end++;
    while (end > open && strchr(".,", text.data[end - 1]))
        end--;
    *ret = (struct box){at, end, slice_of(text.data + open, end - open)};
    return end > open;
}

/* The last \boxed that is in no other box. */
static bool last_mark(struct slice text, size_t *ret)
{
    bool any = false;
    size_t inside_until = 0;
    for (size_t at = 0; at < text.len; at++) {
        const uint8_t *next = memchr(text.data + at, '\\', text.len - at);
        if (!next)
            break;
        at = (size_t)(next - text.data);
        struct box box;
        if (at < inside_until || mark_length(text, at) == 0)
            continue;
        any = true;
        *ret = at;
        if (!read_box(text, at, &box))
            break;
        inside_until = box.end;
    }
    return any;
}

bool extract_has_box(struct slice text)
{
    size_t at;
    return last_mark(text, &at);
}

/* "," "and", "or", "$", "\)", "\quad" and blanks: what stands between boxes that are one list. */
static bool is_between(struct slice gap)
{
    static const char *const parts[] = {
        "\\text{and}", "\\text{ and }", "\\text{or}", "\\text{ or }", "\\quad", "\\qquad", "\\(", "\\)", "\\[", "\\]",
        "\\,",         "\\;",           "\\ ",        "\\ldots",      "and",    "or",      ",",   ";",   "$",   "."};
    for (size_t at = 0; (at = skip_blanks(gap, at)) < gap.len;) {
        size_t len = 0;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && len == 0; i++) {
            size_t part = strlen(parts[i]);
            if (gap.len - at >= part && memcmp(gap.data + at, parts[i], part) == 0)
                len = part;
        }
        if (len == 0)
            return false;
        at += len;
    }
    return true;
}

enum { BOXES_MAX = 64, GAP_MAX = 64 };

/* All boxes that stand together with the last. */
static size_t last_boxes(struct slice text, struct box boxes[BOXES_MAX])
{
    size_t count = 0;
    for (size_t at = 0; at < text.len; at++) {
        const uint8_t *next = memchr(text.data + at, '\\', text.len - at);
        struct box box;
        if (!next)
            break;
        at = (size_t)(next - text.data);
        if (mark_length(text, at) == 0)
            continue;
        if (!read_box(text, at, &box))
            return 0;
        struct slice gap = count ? slice_of(text.data + boxes[count - 1].end, at - boxes[count - 1].end)
                                 : (struct slice){0};
        if (count == BOXES_MAX || gap.len > GAP_MAX || !is_between(gap))
            count = 0;
        boxes[count++] = box;
        at = box.end - 1;
    }
    return count;
}

static bool extract_box(struct slice text, struct buffer *ret, const char **ret_why)
{
    struct box boxes[BOXES_MAX], broken;
    size_t last;
    *ret_why = "no \\boxed{} in the answer";
    if (!last_mark(text, &last))
        return false;
    *ret_why = "the last \\boxed{} in the answer is never closed";
    if (!read_box(text, last, &broken))
        return false;
    size_t count = last_boxes(text, boxes);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        bool is_again = i > 0 && slice_equal(boxes[i].inside, boxes[i - 1].inside);
        if (is_again)
            continue;
        if (any)
            buffer_append(ret, ", ", 2);
        buffer_append(ret, boxes[i].inside.data, boxes[i].inside.len);
        any = true;
    }
    return count > 0;
}

/* ---- marks on a line -------------------------------------------------------------------------------- */

bool extract_has_hashes(struct slice text) { return text_find_last(text, hashes_mark); }

static bool extract_hashes(struct slice text, struct buffer *ret, const char **ret_why)
{
    const uint8_t *mark = text_find_last(text, hashes_mark);
    *ret_why = "no #### in the answer";
    if (!mark)
        return false;
    struct slice line = text_trim(slice_after(line_at(text, mark), strlen(hashes_mark)));
    buffer_append(ret, line.data, line.len);
    *ret_why = "nothing follows #### in the answer";
    return line.len > 0;
}

static bool starts_with_any_case(struct slice text, const char *word)
{
    size_t len = strlen(word);
    return text.len >= len && strncasecmp((const char *)text.data, word, len) == 0;
}

static size_t skip_marks(struct slice text, size_t at, const char *marks)
{
    while (at < text.len && (strchr(marks, text.data[at]) || isspace(text.data[at])) && text.data[at] != '\n')
        at++;
    return at;
}

/* How long "Answer:", "**Answer**:", "answer is" is where it stands; 0: it does not. */
static size_t answer_mark(struct slice text)
{
    if (!starts_with_any_case(text, "answer"))
        return 0;
    size_t at = skip_marks(text, strlen("answer"), "*_");
    if (at < text.len && text.data[at] == ':')
        return skip_marks(text, at + 1, "*_");
    if (starts_with_any_case(slice_after(text, at), "is") && at + 2 < text.len && !isalpha(text.data[at + 2]))
        return skip_marks(text, at + 2, "*_:");
    return 0;
}

static bool find_answer(struct slice text, size_t *ret)
{
    bool any = false;
    for (size_t at = 0; at + 6 < text.len; at++) {
        if ((text.data[at] | 32) != 'a' || (at > 0 && isalpha(text.data[at - 1])))
            continue;
        size_t mark = answer_mark(slice_after(text, at));
        if (mark == 0)
            continue;
        any = true;
        *ret = at + mark;
    }
    return any;
}

bool extract_has_answer(struct slice text)
{
    size_t at;
    return find_answer(text, &at);
}

static struct slice without_emphasis(struct slice text)
{
    text = text_trim(text);
    while (text.len && (text.data[text.len - 1] == '*' || text.data[text.len - 1] == '_'))
        text = text_trim(slice_of(text.data, text.len - 1));
    while (text.len && text.data[0] == '*')
        text = text_trim(slice_after(text, 1));
    return text;
}

static bool extract_line(struct slice text, struct buffer *ret, const char **ret_why)
{
    size_t at;
    *ret_why = "no \"Answer:\" in the answer";
    if (!find_answer(text, &at))
        return false;
    struct slice line = without_emphasis(line_at(text, text.data + at));
    buffer_append(ret, line.data, line.len);
    *ret_why = "nothing follows \"Answer:\" in the answer";
    return line.len > 0;
}

/* ---- numbers and letters -------------------------------------------------------------------------------- */

static bool is_number_byte(uint8_t c) { return isdigit(c) || c == '.' || c == ','; }

/* The last run of digits, points and commas with at least one digit, with its sign and an exponent none. */
static bool extract_number(struct slice text, struct buffer *ret, const char **ret_why)
{
    size_t end = text.len;
    *ret_why = "no number in the answer";
    while (end > 0 && !isdigit(text.data[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && is_number_byte(text.data[start - 1]))
        start--;
    while (start < end && text.data[start] == ',')
        start++;
    if (start == end)
        return false;
    if (start > 0 && text.data[start - 1] == '-' && (start == 1 || !isalnum(text.data[start - 2])))
        start--;
    buffer_append(ret, text.data + start, end - start);
    return true;
}

static bool extract_letter(struct slice text, struct buffer *ret, const char **ret_why)
{
    const char *unused;
    size_t at;
    *ret_why = "the answer is not the letter of a choice, and does not have \"Answer:\" before one";
    if (find_answer(text, &at))
        return extract_line(text, ret, &unused);
    struct slice all = without_emphasis(text);
    buffer_append(ret, all.data, all.len);
    return all.len > 0;
}

bool extract_answer(struct slice text, enum extract how, struct buffer *ret, const char **ret_why)
{
    struct slice all = text_trim(text);
    switch (how) {
    case EXTRACT_BOX: return extract_box(text, ret, ret_why);
    case EXTRACT_HASHES: return extract_hashes(text, ret, ret_why);
    case EXTRACT_ANSWER: return extract_line(text, ret, ret_why);
    case EXTRACT_NUMBER: return extract_number(text, ret, ret_why);
    case EXTRACT_LETTER: return extract_letter(text, ret, ret_why);
    default:
        buffer_append(ret, all.data, all.len);
        *ret_why = "the answer is empty";
        return all.len > 0;
    }
}
