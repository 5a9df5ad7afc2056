#include "workers/engines/jinja/reading/parse_expression.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_operator(const struct jinja_parser *parser, const char *text)
{
    return jinja_peeks(parser, TOKEN_OPERATOR, text);
}

static bool take_operator(struct jinja_parser *parser, const char *text)
{
    return jinja_take(parser, TOKEN_OPERATOR, text);
}

static bool take_word(struct jinja_parser *parser, const char *text) { return jinja_take(parser, TOKEN_NAME, text); }

static struct jinja_node *node_of(struct jinja_parser *parser, enum jinja_node_kind kind, struct jinja_node *a,
                                  struct jinja_node *b)
{
    struct jinja_node *node = jinja_node_new(parser, kind);
    node->a = a;
    node->b = b;
    return node;
}

static struct jinja_node *constant(struct jinja_parser *parser, struct jinja_value value)
{
    struct jinja_node *node = jinja_node_new(parser, NODE_CONSTANT);
    node->constant = value;
    return node;
}

/* ---- what stands by itself ---------------------------------------------------------------------- */

static void append(struct jinja_node ***last, struct jinja_node *node)
{
    **last = node;
    *last = &node->next;
}

/* Items up to the closing bracket, of which a dict has twice as many. */
static struct jinja_node *parse_items(struct jinja_parser *parser, enum jinja_node_kind kind, const char *close)
{
    struct jinja_node *node = jinja_node_new(parser, kind), **last = &node->body;
    while (parser->run->code == 0 && !take_operator(parser, close)) {
        append(&last, jinja_parse_expression(parser));
        if (kind == NODE_DICT) {
            jinja_want(parser, TOKEN_OPERATOR, ":");
            append(&last, jinja_parse_expression(parser));
        }
        if (!is_operator(parser, close))
            jinja_want(parser, TOKEN_OPERATOR, ",");
    }
    return node;
}

/* Behind "(": one expression, or a tuple. */
static struct jinja_node *parse_brackets(struct jinja_parser *parser)
{
    if (take_operator(parser, ")"))
        return jinja_node_new(parser, NODE_TUPLE);
    struct jinja_node *first = jinja_parse_expression(parser);
    if (take_operator(parser, ")"))
        return first;
    struct jinja_node *node = jinja_node_new(parser, NODE_TUPLE), **last = &node->body;
    append(&last, first);
    while (parser->run->code == 0 && !take_operator(parser, ")")) {
        jinja_want(parser, TOKEN_OPERATOR, ",");
        if (!is_operator(parser, ")"))
            append(&last, jinja_parse_expression(parser));
    }
    return node;
}

static struct jinja_node *parse_strings(struct jinja_parser *parser)
{
    struct buffer text = {0};
    struct slice one = jinja_peek(parser)->text;
    parser->at++;
    if (!jinja_peeks(parser, TOKEN_STRING, NULL))
        return constant(parser, jinja_string(one));
    buffer_append(&text, one.data, one.len);
    for (; jinja_peeks(parser, TOKEN_STRING, NULL); parser->at++)
        buffer_append(&text, jinja_peek(parser)->text.data, jinja_peek(parser)->text.len);
    return constant(parser, jinja_string_of(parser->run, &text));
}

static struct jinja_node *parse_number(struct jinja_parser *parser)
{
    const struct jinja_token *token = jinja_peek(parser);
    char text[32];
    parser->at++;
    snprintf(text, sizeof(text), "%.*s", (int)(token->text.len < 31 ? token->text.len : 31),
             (const char *)token->text.data);
    errno = 0;
    const struct jinja_value value = token->kind == TOKEN_REAL ? jinja_real(strtod(text, NULL))
                                                               : jinja_integer(strtoll(text, NULL, 10));
    if (errno || token->text.len > 31)
        jinja_fail(parser->run, "a number that is too long");
    return constant(parser, value);
}

static struct jinja_node *parse_name(struct jinja_parser *parser)
{
    static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (take_word(parser, words[i]))
            return constant(parser, i < 4 ? jinja_bool(i < 2) : jinja_none());
    struct jinja_node *node = jinja_node_new(parser, NODE_NAME);
    const struct slice name = jinja_want_name(parser);
    node->text = name;
    return node;
}

static struct jinja_node *parse_primary(struct jinja_parser *parser)
{
    if (jinja_peeks(parser, TOKEN_STRING, NULL))
        return parse_strings(parser);
    if (jinja_peeks(parser, TOKEN_INTEGER, NULL) || jinja_peeks(parser, TOKEN_REAL, NULL))
        return parse_number(parser);
    if (take_operator(parser, "("))
        return parse_brackets(parser);
    if (take_operator(parser, "["))
        return parse_items(parser, NODE_LIST, "]");
    if (take_operator(parser, "{"))
        return parse_items(parser, NODE_DICT, "}");
    if (jinja_peeks(parser, TOKEN_NAME, NULL))
        return parse_name(parser);
    jinja_refuse_token(parser, "an expression");
    return &parser->nothing;
}

/* ---- what stands behind it ------------------------------------------------------------------------- */

static struct jinja_node *parse_arguments(struct jinja_parser *parser)
{
    struct jinja_node *first = NULL, **last = &first;
    while (parser->run->code == 0 && !take_operator(parser, ")")) {
        struct slice keyword = {0};
        if (jinja_peeks(parser, TOKEN_NAME, NULL) && parser->at + 1 < parser->tokens.count &&
            slice_is(parser->tokens.list[parser->at + 1].text, "=")) {
            keyword = jinja_want_name(parser);
            parser->at++;
        }
        struct jinja_node *node = node_of(parser, NODE_ARGUMENT, jinja_parse_expression(parser), NULL);
        node->text = keyword;
        append(&last, node);
        if (!is_operator(parser, ")"))
            jinja_want(parser, TOKEN_OPERATOR, ",");
    }
    return first;
}

static struct jinja_node *parse_slice_part(struct jinja_parser *parser)
{
    return is_operator(parser, ":") || is_operator(parser, "]") ? NULL : jinja_parse_expression(parser);
}

static struct jinja_node *parse_subscript(struct jinja_parser *parser, struct jinja_node *of)
{
    struct jinja_node *first = parse_slice_part(parser), *node;
    if (first && take_operator(parser, "]"))
        return node_of(parser, NODE_ITEM, of, first);
    node = node_of(parser, NODE_SLICE, of, first);
    jinja_want(parser, TOKEN_OPERATOR, ":");
    struct jinja_node *to = parse_slice_part(parser), *step = NULL;
    if (take_operator(parser, ":"))
        step = parse_slice_part(parser);
    jinja_want(parser, TOKEN_OPERATOR, "]");
    node->c = to;
    node->other = step;
    return node;
}

static struct jinja_node *parse_attribute(struct jinja_parser *parser, struct jinja_node *of)
{
    if (jinja_peeks(parser, TOKEN_INTEGER, NULL))
        return node_of(parser, NODE_ITEM, of, parse_number(parser));
    struct jinja_node *node = node_of(parser, NODE_ATTRIBUTE, of, NULL);
    const struct slice name = jinja_want_name(parser);
    node->text = name;
    return node;
}

/* One more of ".name", "[...]", "(...)"; NULL: there is none. */
static struct jinja_node *parse_postfix(struct jinja_parser *parser, struct jinja_node *of)
{
    if (take_operator(parser, "."))
        return parse_attribute(parser, of);
    if (take_operator(parser, "["))
        return parse_subscript(parser, of);
    if (!take_operator(parser, "("))
        return NULL;
    struct jinja_node *node = node_of(parser, NODE_CALL, of, NULL), *given = parse_arguments(parser);
    node->body = given;
    return node;
}

static struct jinja_node *parse_postfixes(struct jinja_parser *parser, struct jinja_node *node)
{
    struct jinja_node *next;
    while ((next = parse_postfix(parser, node)))
        node = next;
    return node;
}

static struct jinja_node *named(struct jinja_parser *parser, enum jinja_node_kind kind, struct jinja_node *of)
{
    struct jinja_node *node = node_of(parser, kind, of, NULL);
    const struct slice name = jinja_want_name(parser);
    node->text = name;
    return node;
}

static struct jinja_node *parse_filter(struct jinja_parser *parser, struct jinja_node *of)
{
    struct jinja_node *node = named(parser, NODE_FILTER, of);
    if (take_operator(parser, "("))
        node->body = parse_arguments(parser);
    return node;
}

/* A test's argument may stand without brackets. */
static bool has_argument(const struct jinja_parser *parser)
{
    static const enum jinja_token_kind kinds[] = {TOKEN_NAME, TOKEN_STRING, TOKEN_INTEGER, TOKEN_REAL};
    static const char *const not_one[] = {"else", "or", "and", "if", "is", "not", "in"};
    for (size_t i = 0; i < sizeof(not_one) / sizeof(*not_one); i++)
        if (jinja_peeks(parser, TOKEN_NAME, not_one[i]))
            return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (jinja_peeks(parser, kinds[i], NULL))
            return true;
    return is_operator(parser, "[") || is_operator(parser, "{");
}

static struct jinja_node *parse_test(struct jinja_parser *parser, struct jinja_node *of)
{
    const bool is_not = take_word(parser, "not");
    struct jinja_node *node = named(parser, NODE_TEST, of), *given = NULL;
    if (take_operator(parser, "("))
        given = parse_arguments(parser);
    else if (has_argument(parser))
        given = node_of(parser, NODE_ARGUMENT, parse_postfixes(parser, parse_primary(parser)), NULL);
    node->body = given;
    return is_not ? node_of(parser, NODE_NOT, node, NULL) : node;
}

static struct jinja_node *parse_filters(struct jinja_parser *parser, struct jinja_node *node)
{
    for (struct jinja_node *next = node; next; node = next ? next : node)
        if (take_operator(parser, "|"))
            next = parse_filter(parser, node);
        else if (take_word(parser, "is"))
            next = parse_test(parser, node);
        else
            next = is_operator(parser, "(") ? parse_postfix(parser, node) : NULL;
    return node;
}

/* ---- operators --------------------------------------------------------------------------------------- */

static struct jinja_node *parse_unary(struct jinja_parser *parser, bool has_filters)
{
    struct jinja_node *node;
    if (!jinja_enter(parser->run, jinja_peek(parser)->line))
        node = &parser->nothing;
    else if (take_operator(parser, "-"))
        node = node_of(parser, NODE_NEGATIVE, parse_unary(parser, false), NULL);
    else if (take_operator(parser, "+"))
        node = parse_unary(parser, false);
    else
        node = parse_primary(parser);
    node = parse_postfixes(parser, node);
    node = has_filters ? parse_filters(parser, node) : node;
    jinja_leave(parser->run);
    return node;
}

/* Each level's operators, from the tightest on; all but "**" are of the left. */
static const char *const levels[][7] = {
    {"**"}, {"*", "/", "//", "%"}, {"~"}, {"+", "-"}, {"==", "!=", "<", ">", "<=", ">="}};
enum { LEVELS = sizeof(levels) / sizeof(*levels), COMPARISONS = LEVELS - 1 };

static struct slice take_level(struct jinja_parser *parser, unsigned level)
{
    const struct slice text = jinja_peek(parser)->text;
    for (size_t i = 0; i < 7 && levels[level][i]; i++)
        if (take_operator(parser, levels[level][i]))
            return text;
    if (level == COMPARISONS && take_word(parser, "in"))
        return slice_from_str("in");
    if (level == COMPARISONS && jinja_peeks(parser, TOKEN_NAME, "not") && parser->at + 1 < parser->tokens.count &&
        slice_is(parser->tokens.list[parser->at + 1].text, "in")) {
        parser->at += 2;
        return slice_from_str("not in");
    }
    return slice_of(NULL, 0);
}

static struct jinja_node *parse_level(struct jinja_parser *parser, unsigned level)
{
    struct jinja_node *node = level ? parse_level(parser, level - 1) : parse_unary(parser, true);
    struct slice operator;
    for (unsigned count = 0; (operator= take_level(parser, level)).len; count++) {
        if (level == COMPARISONS && count)
            jinja_fail(parser->run, "comparisons in a row are not known here");
        node = node_of(parser, NODE_OPERATION, node,
                       level ? parse_level(parser, level - 1) : parse_unary(parser, true));
        node->text = operator;
    }
    return node;
}

static struct jinja_node *parse_not(struct jinja_parser *parser)
{
    bool is_not = false, any = false;
    for (; take_word(parser, "not"); any = true)
        is_not = !is_not;
    struct jinja_node *node = parse_level(parser, COMPARISONS);
    if (any && !is_not)
        node = node_of(parser, NODE_NOT, node, NULL);
    return any ? node_of(parser, NODE_NOT, node, NULL) : node;
}

static struct jinja_node *parse_and(struct jinja_parser *parser)
{
    struct jinja_node *node = parse_not(parser);
    while (take_word(parser, "and"))
        node = node_of(parser, NODE_AND, node, parse_not(parser));
    return node;
}

struct jinja_node *jinja_parse_plain(struct jinja_parser *parser)
{
    struct jinja_node *node = parse_and(parser);
    while (take_word(parser, "or"))
        node = node_of(parser, NODE_OR, node, parse_and(parser));
    return node;
}

struct jinja_node *jinja_parse_expression(struct jinja_parser *parser)
{
    struct jinja_node *node = jinja_parse_plain(parser);
    while (take_word(parser, "if")) {
        node = node_of(parser, NODE_CHOICE, node, jinja_parse_plain(parser));
        struct jinja_node *other = take_word(parser, "else") ? jinja_parse_expression(parser) : NULL;
        node->c = other;
    }
    return node;
}
