#include "workers/evaluators/math/parse/parse_units.h"

#include <ctype.h>

#include "workers/evaluators/math/parse/units.h"

struct unit {
    char text[MATH_UNIT_SIZE];
    size_t used;
};

static bool unit_append(struct unit *unit, const char *text, size_t len)
{
    if (unit->used + len >= sizeof(unit->text))
        return false;
    memcpy(unit->text + unit->used, text, len);
    unit->used += len;
    return true;
}

/* Words that are of no unit: 5 or more, at most 5. */
static bool is_no_unit(struct slice word)
{
    static const char *const words[] = {"or",   "and", "not",   "no",      "more",  "less",  "than", "least",
                                        "most", "at",  "if",    "for",     "to",    "where", "when", "with",
                                        "is",   "are", "other", "greater", "fewer", "about"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (slice_is(word, words[i]))
            return true;
    return false;
}

/* The words of a \text{}: each by its unit's name, else as it stands, blanks gone. */
static bool unit_append_words(struct unit *unit, struct slice text)
{
    for (size_t at = 0; at < text.len;) {
        size_t len = 0;
        while (at + len < text.len && (isalpha(text.data[at + len]) || text.data[at + len] == '.'))
            len++;
        struct slice word = slice_of(text.data + at, len);
        const char *name = len ? unit_name(word) : NULL;
        if (is_no_unit(word))
            return false;
        bool fits = name  ? unit_append(unit, name, strlen(name))
                    : len ? unit_append(unit, (const char *)word.data, len)
                          : isspace(text.data[at]) || unit_append(unit, (const char *)text.data + at, 1);
        if (!fits)
            return false;
        at += len ? len : 1;
    }
    return true;
}

bool parse_begins_unit(const struct parser *parser, const struct math_node *value)
{
    const struct math_token *token = parser->token;
    if (token->kind == MATH_WORDS)
        return value->kind != MATH_IS_WORDS;
    return token->kind == MATH_LETTER && (token->word.len > 1 || token->blank) && node_is_numeric(value) &&
           unit_name(token->word);
}

static bool take_unit_power(struct parser *parser, struct unit *unit)
{
    bool braces = is_sign(parser->token + 1, '{');
    const struct math_token *number = parser->token + 1 + braces;
    if (number->kind != MATH_NUMBER || (braces && !is_sign(number + 1, '}')))
        return false;
    parser->token += 2 + 2 * braces;
    return unit_append(unit, "^", 1) && unit_append(unit, (const char *)number->text.data, number->text.len);
}

static bool take_unit_part(struct parser *parser, struct unit *unit)
{
    const struct math_token *token = parser->token;
    if (token->kind == MATH_WORDS) {
        parser->token++;
        return unit_append_words(unit, token->text);
    }
    if (token->kind == MATH_LETTER && unit_name(token->word)) {
        parser->token += token->word.len;
        return unit_append_words(unit, token->word);
    }
    return false;
}

static bool take_unit(struct parser *parser, struct unit *unit)
{
    if (!take_unit_part(parser, unit))
        return false;
    for (;;) {
        const struct math_token *token = parser->token;
        if (is_sign(token, '^') ? !take_unit_power(parser, unit) : is_sign(token, '/') ? parser->token++,
            !unit_append(unit, "/", 1) || !take_unit_part(parser, unit)
            : token->kind == MATH_WORDS || (token->kind == MATH_LETTER && unit_name(token->word))
              ? !take_unit_part(parser, unit)
              : true)
            return token == parser->token; /* at the end, and not amid something that is no unit */
    }
}

struct math_node *parse_unit(struct parser *parser, struct math_node *value)
{
    struct math_tree *tree = parser->tree;
    struct unit unit = {.used = 0};
    if (!value || value->kind == MATH_IS_PERCENT || value->kind == MATH_IS_UNIT || !parse_begins_unit(parser, value))
        return value;
    struct math_node *node = take_unit(parser, &unit) ? node_of(parser->tree, MATH_IS_UNIT, value) : NULL;
    if (!node || tree->units_used + unit.used > tree->room)
        return NULL;
    node->text = slice_of(tree->units + tree->units_used, unit.used);
    memcpy(tree->units + tree->units_used, unit.text, unit.used);
    tree->units_used += unit.used;
    return node;
}
