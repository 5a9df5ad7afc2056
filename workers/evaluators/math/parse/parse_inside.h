/*
 * evaluators/math/parse/parse_inside.h - what the files that make a tree share: parse.c (lists and relations),
 * parse_units.c, parse_operators.c (sums down to powers) and parse_operands.c (numbers, names, commands, brackets).
 * Every function that parses returns NULL where the text is not understood; nothing is to be freed.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_INSIDE_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_INSIDE_H

#include "workers/evaluators/math/parse/tree.h"

struct parser {
    struct math_tree *tree;
    struct math_token *token; /* the next one */
    int depth, bars;          /* levels of nesting; of | that are open */
};

static inline bool is_sign(const struct math_token *token, char sign)
{
    return token->kind == MATH_SIGN && token->sign == sign;
}
static inline bool is_command(const struct math_token *token, const char *name)
{
    return token->kind == MATH_COMMAND && slice_is(token->text, name);
}
static inline bool parser_take(struct parser *parser, char sign)
{
    bool is_here = is_sign(parser->token, sign);
    parser->token += is_here;
    return is_here;
}
/* One level deeper; false: too deep. parser_leave() follows only a true. */
static inline bool parser_enter(struct parser *parser) { return parser->depth < MATH_DEPTH_MAX && ++parser->depth; }
static inline void parser_leave(struct parser *parser) { parser->depth--; }

/* Elements apart by ; and , and "and", or the one that there is. */
struct math_node *parse_list(struct parser *parser);

#endif
