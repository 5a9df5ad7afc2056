#include "workers/evaluators/math/parse/parse.h"

#include <stdlib.h>

#include "workers/evaluators/math/parse/parse_inside.h"
#include "workers/evaluators/math/parse/parse_operators.h"

/* ---- relations ----------------------------------------------------------------------------------------- */

/* a:b:c */
static struct math_node *parse_ratio(struct parser *parser)
{
    struct math_node *first = parse_union(parser);
    if (!first || !is_sign(parser->token, ':'))
        return first;
    struct math_node *ratio = node_of(parser->tree, MATH_IS_RATIO, first);
    while (ratio && parser_take(parser, ':')) {
        struct math_node *next = parse_union(parser);
        if (!next)
            return NULL;
        node_push(ratio, next);
    }
    return ratio;
}

static struct math_node *parse_relation(struct parser *parser)
{
    struct math_node *first = parse_ratio(parser);
    if (!first || parser->token->kind != MATH_RELATION)
        return first;
    struct math_node *relation = node_of(parser->tree, MATH_IS_RELATION, first);
    char *signs = parser->tree->units + parser->tree->units_used;
    size_t count = 0;
    char found[16];
    while (relation && parser->token->kind == MATH_RELATION) {
        if (count == sizeof(found))
            return NULL;
        found[count++] = parser->token++->sign;
        struct math_node *next = parse_ratio(parser);
        if (!next)
            return NULL;
        node_push(relation, next);
    }
    if (!relation || parser->tree->units_used + count > parser->tree->room)
        return NULL;
    signs = parser->tree->units + parser->tree->units_used;
    memcpy(signs, found, count);
    parser->tree->units_used += count;
    relation->text = slice_of(signs, count);
    return relation;
}

/* ---- lists ----------------------------------------------------------------------------------------------- */

static bool is_separator(const struct math_token *token, const char *separators)
{
    return token->kind == MATH_SIGN && strchr(separators, token->sign);
}

/* Elements between `separators`, of which several may stand together: ", and". */
static struct math_node *parse_separated(struct parser *parser, const char *separators,
                                         struct math_node *(*parse)(struct parser *))
{
    struct math_node *first = parse(parser);
    if (!first || !is_separator(parser->token, separators))
        return first;
    struct math_node *list = node_of(parser->tree, MATH_IS_LIST, first);
    while (list && is_separator(parser->token, separators)) {
        while (is_separator(parser->token, separators))
            parser->token++;
        struct math_node *next = parse(parser);
        if (!next)
            return NULL;
        node_push(list, next);
    }
    return list;
}

static struct math_node *parse_commas(struct parser *parser) { return parse_separated(parser, ",o", parse_relation); }

struct math_node *parse_list(struct parser *parser)
{
    if (!parser_enter(parser))
        return NULL;
    struct math_node *list = parse_separated(parser, ";", parse_commas);
    parser_leave(parser);
    return list;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

bool math_parse(struct slice text, enum math_comma comma, struct math_tree *ret)
{
    struct math_tree tree = {0};
    if (!math_scan(text, comma, &tree.tokens))
        return false;
    tree.room = 3 * tree.tokens.count + 8;
    tree.nodes = malloc(tree.room * sizeof(*tree.nodes));
    tree.units = malloc(tree.room);
    struct parser parser = {.tree = &tree, .token = tree.tokens.at};
    if (tree.nodes && tree.units)
        tree.root = parse_list(&parser);
    if (tree.root && parser.token->kind == MATH_END) {
        *ret = tree;
        return true;
    }
    math_tree_finish(&tree);
    return false;
}
