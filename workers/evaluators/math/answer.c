#include "workers/evaluators/math/answer.h"

#include <ctype.h>
#include <strings.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/math/normal.h"
#include "workers/evaluators/math/number.h"

enum { BOXES_TRIED = 16, LIST_MAX = 64, LIST_DEPTH_MAX = 8 };

/* ---- finding ------------------------------------------------------------------------------ */

/* text follows "\boxed": what its braces hold. */
static bool read_box(struct slice text, struct slice *ret)
{
    size_t at = 0;
    while (at < text.len && isspace(text.data[at]))
        at++;
    if (at == text.len || text.data[at] != '{')
        return false;
    size_t start = ++at;
    for (int depth = 1; at < text.len; at++) {
        char c = (char)text.data[at];
        if (c == '\\')
            at++;
        else if (c == '{')
            depth++;
        else if (c == '}' && --depth == 0) {
            *ret = slice_of(text.data + start, at - start);
            return true;
        }
    }
    return false;
}

bool math_answer_find(struct slice text, struct slice *ret)
{
    static const char box[] = "\\boxed";
    const size_t len = sizeof(box) - 1;
    if (text.len > MATH_TEXT_MAX)
        return false;
    int tried = 0;
    for (size_t at = text.len; at-- > 0 && tried < BOXES_TRIED;) {
        if (text.len - at < len || memcmp(text.data + at, box, len) != 0)
            continue;
        tried++;
        if (read_box(slice_of(text.data + at + len, text.len - at - len), ret))
            return true;
    }
    return false;
}

/* ---- lists -------------------------------------------------------------------------------- */

struct list {
    char open, close; /* 0: no brackets */
    size_t count;
    char *elements[LIST_MAX];
};

static bool is_open(char c) { return c == '(' || c == '[' || c == '{' || c == MATH_SET_OPEN; }
static bool is_close(char c) { return c == ')' || c == ']' || c == '}' || c == MATH_SET_CLOSE; }

/* Whether the bracket at the start closes at the very end. */
static bool is_bracketed(const char *text)
{
    int depth = 0;
    if (!is_open(text[0]) || text[0] == '{')
        return false;
    for (const char *at = text; *at; at++) {
        depth += is_open(*at) - is_close(*at);
        if (depth == 0)
            return at[1] == '\0';
    }
    return false;
}

/* Cuts text (which it writes into) at its outermost commas. False: it is not a list. */
static bool list_split(char *text, struct list *list)
{
    if (is_bracketed(text)) {
        char *end = text + strlen(text) - 1;
        list->open = text[0];
        list->close = *end;
        *end = '\0';
        text++;
    }
    list->elements[list->count++] = text;
    int depth = 0;
    for (char *at = text; *at; at++) {
        depth += is_open(*at) - is_close(*at);
        if (depth != 0 || *at != ',')
            continue;
        if (list->count == LIST_MAX)
            return false;
        *at = '\0';
        list->elements[list->count++] = at + 1;
    }
    return list->count > 1 || list->open == MATH_SET_OPEN;
}

static bool normal_equal(const char *a, const char *b, bool thousands, int depth);

static bool is_unordered(const struct list *list) { return list->open == MATH_SET_OPEN || list->open == '\0'; }

static bool equal_in_order(const struct list *a, const struct list *b, int depth)
{
    for (size_t i = 0; i < a->count; i++)
        if (!normal_equal(a->elements[i], b->elements[i], false, depth))
            return false;
    return true;
}

static bool equal_in_any_order(const struct list *a, const struct list *b, int depth)
{
    bool taken[LIST_MAX] = {false};
    for (size_t i = 0; i < a->count; i++) {
        size_t k = 0;
        while (k < b->count && (taken[k] || !normal_equal(a->elements[i], b->elements[k], false, depth)))
            k++;
        if (k == b->count)
            return false;
        taken[k] = true;
    }
    return true;
}

static bool lists_equal(const char *a, const char *b, int depth)
{
    AUTO_FREE char *copy_a = strdup(a);
    AUTO_FREE char *copy_b = strdup(b);
    struct list list_a = {0}, list_b = {0};
    if (!copy_a || !copy_b || depth > LIST_DEPTH_MAX)
        return false;
    if (!list_split(copy_a, &list_a) || !list_split(copy_b, &list_b) || list_a.count != list_b.count)
        return false;
    if (is_unordered(&list_a) && is_unordered(&list_b))
        return equal_in_any_order(&list_a, &list_b, depth);
    return list_a.open == list_b.open && list_a.close == list_b.close && equal_in_order(&list_a, &list_b, depth);
}

/* ---- words -------------------------------------------------------------------------------- */

static void drop_text_marks(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != MATH_TEXT_OPEN && *from != MATH_TEXT_CLOSE)
            *to++ = *from;
    *to = '\0';
}

/* (A) is A: a choice. */
static const char *choice(char *text)
{
    if (text[0] == '(' && isalpha((unsigned char)text[1]) && text[2] == ')' && !text[3]) {
        text[2] = '\0';
        return text + 1;
    }
    return text;
}

static bool is_word(const char *text)
{
    size_t len = 0;
    while (isalpha((unsigned char)text[len]))
        len++;
    return len > 1 && text[len] == '\0';
}

static bool words_equal(const char *a, const char *b)
{
    AUTO_FREE char *copy_a = strdup(a);
    AUTO_FREE char *copy_b = strdup(b);
    if (!copy_a || !copy_b)
        return false;
    drop_text_marks(copy_a);
    drop_text_marks(copy_b);
    const char *plain_a = choice(copy_a), *plain_b = choice(copy_b);
    if (strcmp(plain_a, plain_b) == 0)
        return true;
    return is_word(plain_a) && is_word(plain_b) && strcasecmp(plain_a, plain_b) == 0;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* What follows "x=" or "x\in", or NULL. */
static const char *after_variable(const char *text)
{
    if (!isalpha((unsigned char)text[0]))
        return NULL;
    if (text[1] == '=' && text[2])
        return text + 2;
    bool is_member = strncmp(text + 1, "\\in", 3) == 0 && text[4] && !isalpha((unsigned char)text[4]);
    return is_member ? text + 4 : NULL;
}

/* thousands: whether 1,000 may be one number here; inside a list a comma only separates. */
static bool normal_equal(const char *a, const char *b, bool thousands, int depth)
{
    const char *value_a = after_variable(a), *value_b = after_variable(b);
    if (value_a && value_b && a[0] != b[0])
        return false;
    AUTO_FREE char *copy_a = strdup(value_a ? value_a : a);
    AUTO_FREE char *copy_b = strdup(value_b ? value_b : b);
    if (!copy_a || !copy_b)
        return false;
    if (words_equal(copy_a, copy_b))
        return true;
    if (thousands) {
        math_drop_thousands(copy_a);
        math_drop_thousands(copy_b);
    }
    struct math_number number_a, number_b;
    bool is_number_a = math_number_parse(copy_a, &number_a);
    bool is_number_b = math_number_parse(copy_b, &number_b);
    if (is_number_a || is_number_b)
        return is_number_a && is_number_b && math_number_equal(&number_a, &number_b);
    return lists_equal(copy_a, copy_b, depth + 1);
}

bool math_answer_equal(struct slice a, struct slice b)
{
    if (a.len > MATH_TEXT_MAX || b.len > MATH_TEXT_MAX)
        return false;
    if (a.len && slice_equal(a, b))
        return true;
    AUTO_FREE char *normal_a = math_normalize(a);
    AUTO_FREE char *normal_b = math_normalize(b);
    if (!normal_a || !normal_b || !normal_a[0] || !normal_b[0])
        return false;
    return normal_equal(normal_a, normal_b, true, 0);
}
