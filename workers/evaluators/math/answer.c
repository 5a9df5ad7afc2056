#include "workers/evaluators/math/answer.h"

#include <ctype.h>
#include <strings.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/evaluators/math/compare/compare.h"
#include "workers/evaluators/math/parse/parse.h"

enum { FUEL = 20000 };

/* ---- as text --------------------------------------------------------------------------------------- */

/* What math_scan() leaves, as text: \text{Yes} is yes, and so is (Yes). NULL: nothing is left, or it cannot be read. */
static char *flatten(struct slice text)
{
    struct math_tokens tokens;
    struct buffer flat = {0};
    if (!math_scan(text, MATH_COMMA_SEPARATES, &tokens))
        return NULL;
    for (const struct math_token *token = tokens.at; token->kind != MATH_END; token++) {
        if (token->kind == MATH_NUMBER || token->kind == MATH_SYMBOL || token->kind == MATH_FUNCTION ||
            token->kind == MATH_COMMAND)
            buffer_append(&flat, "\\", 1);
        if (token->kind == MATH_RELATION || (token->kind == MATH_SIGN && isalpha(token->sign)))
            buffer_append(&flat, "\1", 1);
        if (token->sign)
            buffer_append(&flat, &token->sign, 1);
        else
            for (size_t i = 0; i < token->text.len; i++)
                if (!isspace(token->text.data[i]))
                    buffer_append(&flat, token->text.data + i, 1);
        if (token->exponent)
            buffer_printf(&flat, "e%d", token->exponent);
    }
    free(tokens.at);
    return buffer_take_str(&flat);
}

static bool is_letters(const char *text)
{
    size_t count = 0;
    while (isalpha((unsigned char)text[count]))
        count++;
    return count > 0 && text[count] == '\0';
}

/* (A) is A. */
static char *without_brackets(char *text)
{
    size_t len = strlen(text);
    if (len != 3 || text[0] != '(' || text[2] != ')' || !isalpha((unsigned char)text[1]))
        return text;
    text[2] = '\0';
    return text + 1;
}

static bool same_text(struct slice wanted, struct slice given)
{
    AUTO_FREE char *flat_wanted = flatten(wanted);
    AUTO_FREE char *flat_given = flatten(given);
    if (!flat_wanted || !flat_given || !flat_wanted[0])
        return false;
    const char *a = without_brackets(flat_wanted), *b = without_brackets(flat_given);
    return strcmp(a, b) == 0 || (a[1] && is_letters(a) && is_letters(b) && strcasecmp(a, b) == 0);
}

/* ---- as trees ---------------------------------------------------------------------------------------- */

/* 000 after a comma is no element of a list: 1,000 is one number. */
static bool is_list_reading(const struct math_tree *tree)
{
    for (const struct math_token *token = tree->tokens.at; token->kind != MATH_END; token++)
        if (token->kind == MATH_SIGN && token->sign == ',' && token[1].kind == MATH_NUMBER && !token[1].blank &&
            token[1].text.len > 1 && token[1].text.data[0] == '0' && token[1].point == token[1].text.len)
            return false;
    return true;
}

/* In both readings of its commas; the second only where it may be another. */
struct readings {
    struct math_tree trees[2];
    size_t count;
};

static void read_both(struct slice text, struct readings *ret)
{
    struct math_tree *tree = ret->trees;
    ret->count = 0;
    if (math_parse(text, MATH_COMMA_SEPARATES, tree)) {
        if (is_list_reading(tree))
            tree = &ret->trees[++ret->count];
        else
            math_tree_finish(tree);
        if (ret->count == 1 && !ret->trees[0].tokens.has_ambiguous_comma)
            return;
    }
    ret->count += math_parse(text, MATH_COMMA_GROUPS, tree);
}

static void readings_finish(struct readings *readings)
{
    for (size_t i = 0; i < readings->count; i++)
        math_tree_finish(&readings->trees[i]);
}

static enum math_verdict compare_trees(const struct readings *wanted, const struct readings *given,
                                       const struct math_options *options)
{
    struct comparison comparison = {.options = options, .fuel = FUEL};
    if (wanted->count == 0 || given->count == 0)
        return MATH_NOT_UNDERSTOOD;
    for (size_t i = 0; i < wanted->count; i++)
        for (size_t k = 0; k < given->count; k++)
            if (compare_any(&comparison, (struct view){wanted->trees[i].root, SIGN_BOTH},
                            (struct view){given->trees[k].root, SIGN_BOTH}))
                return MATH_EQUAL;
    return comparison.fuel <= 0 ? MATH_TOO_LONG : comparison.is_unfinished ? MATH_UNFINISHED : MATH_DIFFERENT;
}

enum math_verdict math_compare(struct slice wanted, struct slice given, const struct math_options *options)
{
    wanted = text_trim(wanted);
    given = text_trim(given);
    if (wanted.len && slice_equal(wanted, given))
        return MATH_EQUAL;
    if (wanted.len > MATH_TEXT_MAX || given.len > MATH_TEXT_MAX)
        return MATH_TOO_LONG;
    if (same_text(wanted, given))
        return MATH_EQUAL;
    struct readings a, b;
    read_both(wanted, &a);
    read_both(given, &b);
    enum math_verdict verdict = compare_trees(&a, &b, options);
    readings_finish(&a);
    readings_finish(&b);
    return verdict;
}
