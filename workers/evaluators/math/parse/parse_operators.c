#include "workers/evaluators/math/parse/parse_operators.h"

#include "workers/evaluators/math/parse/parse_operands.h"
#include "workers/evaluators/math/parse/parse_units.h"

/* ---- products ------------------------------------------------------------------------------------ */

static bool is_whole(const struct math_node *node) { return node->kind == MATH_IS_NUMBER && node->number.is_whole; }

/* 2\frac13 is 7/3. */
static bool is_mixed(const struct math_node *whole, const struct math_node *part, bool is_command)
{
    return is_command && is_whole(whole) && !whole->is_bracketed && part->kind == MATH_IS_QUOTIENT &&
           is_whole(part->first) && is_whole(part->last);
}

/* What stands left of where the next factor goes: the last factor of a product, or the value itself. */
static struct math_node *multiply(struct parser *parser, struct math_node *product, struct math_node *factor)
{
    if (!product || !factor)
        return NULL;
    if (product->kind == MATH_IS_PRODUCT && !product->is_bracketed) {
        node_push(product, factor);
        return product;
    }
    return node_of_two(parser->tree, MATH_IS_PRODUCT, product, factor);
}

static bool joins(const struct parser *parser, const struct math_node *product)
{
    const struct math_node *before = product->kind == MATH_IS_PRODUCT && !product->is_bracketed ? product->last
                                                                                                : product;
    if (!parse_begins_operand(parser) || before->kind == MATH_IS_WORDS || parse_begins_unit(parser, product))
        return false;
    if (parser->token->kind == MATH_NUMBER && before->kind == MATH_IS_NUMBER && !before->is_bracketed)
        return false;
    return true;
}

static struct math_node *parse_product(struct parser *parser)
{
    struct math_node *product = parse_factor(parser);
    while (product) {
        if (parser_take(parser, '*')) {
            product = multiply(parser, product, parse_factor(parser));
        } else if (parser_take(parser, '/')) {
            struct math_node *quotient = node_of_two(parser->tree, MATH_IS_QUOTIENT, product, parse_factor(parser));
            product = quotient;
        } else if (joins(parser, product)) {
            bool is_command = parser->token->kind == MATH_COMMAND && product->kind == MATH_IS_NUMBER;
            struct math_node *factor = parse_factor(parser);
            if (factor && is_mixed(product, factor, is_command)) {
                product = node_of_two(parser->tree, MATH_IS_SUM, product, factor);
                if (product)
                    product->is_mixed = product->is_bracketed = true;
            } else {
                product = multiply(parser, product, factor);
            }
        } else {
            return product;
        }
    }
    return NULL;
}

/* ---- sums ------------------------------------------------------------------------------------------- */

static bool is_sum_sign(const struct math_token *token)
{
    return token->kind == MATH_SIGN && strchr("+-pm", token->sign);
}

/* -50% is (-50)%, and -90 degrees are (-90) degrees. */
static struct math_node *negate(struct parser *parser, struct math_node *value)
{
    if (value && (value->kind == MATH_IS_PERCENT || value->kind == MATH_IS_UNIT)) {
        struct math_node *inner = node_of(parser->tree, MATH_IS_NEGATIVE, value->first);
        value->first = value->last = inner;
        return inner ? value : NULL;
    }
    return node_of(parser->tree, MATH_IS_NEGATIVE, value);
}

static struct math_node *parse_term(struct parser *parser)
{
    const struct math_token *sign = parser->token;
    if (!is_sum_sign(sign))
        return parse_product(parser);
    if (!parser_enter(parser))
        return NULL;
    parser->token++;
    struct math_node *value = parse_term(parser);
    parser_leave(parser);
    if (!value || sign->sign == '+')
        return value;
    if (sign->sign == '-')
        return negate(parser, value);
    struct math_node *both = node_of(parser->tree, MATH_IS_SIGNED, value);
    if (both)
        both->sign = sign->sign == 'p' ? '+' : '-';
    return both;
}

static struct math_node *parse_sum(struct parser *parser)
{
    struct math_node *sum = parse_term(parser);
    bool is_open = false;
    while (sum && is_sum_sign(parser->token)) {
        struct math_node *term = parse_term(parser);
        if (!term)
            return NULL;
        if (is_open)
            node_push(sum, term);
        else
            sum = node_of_two(parser->tree, MATH_IS_SUM, sum, term);
        is_open = true;
    }
    return parse_unit(parser, sum);
}

struct math_node *parse_union(struct parser *parser)
{
    struct math_node *first = parse_sum(parser);
    while (first && parser->token->kind == MATH_SIGN && strchr("unb", parser->token->sign)) {
        char sign = parser->token++->sign;
        struct math_node *next = parse_sum(parser);
        if (next && sign == 'u' && first->kind == MATH_IS_UNION)
            node_push(first, next);
        else if (sign == 'u')
            first = node_of_two(parser->tree, MATH_IS_UNION, first, next);
        else
            first = next ? node_call(parser->tree, sign == 'n' ? "cap" : "setminus", first, next) : NULL;
        if (!next)
            return NULL;
    }
    return first;
}

/* ---- powers --------------------------------------------------------------------------------------------- */

static struct math_node *parse_exponent(struct parser *parser)
{
    if (is_sign(parser->token, '-') || is_sign(parser->token, '+')) {
        bool is_negative = parser->token++->sign == '-';
        struct math_node *value = parse_operand(parser);
        return is_negative ? node_of(parser->tree, MATH_IS_NEGATIVE, value) : value;
    }
    return parse_operand(parser);
}

/* ^{\circ}, ^\circ, ^{\prime}: signs, and no exponents. */
static bool take_raised_sign(struct parser *parser, char sign)
{
    struct math_token *token = parser->token;
    if (!is_sign(token, '^'))
        return false;
    bool braces = is_sign(token + 1, '{');
    if (!is_sign(token + 1 + braces, sign) || (braces && !is_sign(token + 3, '}')))
        return false;
    parser->token += 2 + 2 * braces;
    return true;
}

static struct math_node *degrees(struct parser *parser, struct math_node *value)
{
    struct math_node *node = node_of(parser->tree, MATH_IS_UNIT, value);
    if (node)
        node->text = slice_from_str("degree");
    return node;
}

struct math_node *parse_factor(struct parser *parser)
{
    struct math_node *value = parse_operand(parser);
    while (value) {
        if (take_raised_sign(parser, 'd') || (node_is_numeric(value) && parser_take(parser, 'd')))
            value = degrees(parser, value);
        else if (take_raised_sign(parser, '\'') || parser_take(parser, '\''))
            value = node_call(parser->tree, "'", value, NULL);
        else if (parser_take(parser, '%'))
            value = node_of(parser->tree, MATH_IS_PERCENT, value);
        else if (parser_take(parser, '!'))
            value = node_call(parser->tree, "!", value, NULL);
        else if (parser_take(parser, '_')) {
            struct math_node *below = parse_argument(parser);
            value = below ? node_call(parser->tree, "_", value, below) : NULL;
        } else if (parser_take(parser, '^')) {
            if (!parser_enter(parser))
                return NULL;
            struct math_node *exponent = parse_exponent(parser);
            if (exponent && is_sign(parser->token, '^')) { /* 2^3^4 is 2^(3^4) */
                parser->token++;
                exponent = node_of_two(parser->tree, MATH_IS_POWER, exponent, parse_exponent(parser));
            }
            parser_leave(parser);
            value = node_of_two(parser->tree, MATH_IS_POWER, value, exponent);
        } else
            return value;
    }
    return NULL;
}
