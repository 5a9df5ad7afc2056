#include "workers/evaluators/math/parse/parse_operands.h"

#include <stdio.h>

#include "workers/evaluators/math/parse/parse_operators.h"

/* ---- numbers and names --------------------------------------------------------------------------- */

static struct math_node *number_of(struct parser *parser, const struct math_token *token)
{
    struct math_node *node = node_new(parser->tree, MATH_IS_NUMBER);
    if (!node || !math_number_read(token, &node->number))
        return NULL;
    node->text = token->text;
    return node;
}

/* 1 1/2 */
static struct math_node *mixed_number(struct parser *parser, struct math_node *whole)
{
    struct math_token *above = parser->token;
    struct math_node *part = node_of_two(parser->tree, MATH_IS_QUOTIENT, number_of(parser, above),
                                         number_of(parser, above + 2));
    parser->token += 3;
    if (!part || !part->first->number.is_whole || !part->last->number.is_whole)
        return NULL;
    struct math_node *sum = node_of_two(parser->tree, MATH_IS_SUM, whole, part);
    if (sum)
        sum->is_mixed = sum->is_bracketed = true;
    return sum;
}

/* 0.\overline{3}: what repeats, over as many nines. */
static struct math_node *repeating(struct parser *parser, struct math_node *number)
{
    const struct math_token *digits = parser->token + 2;
    if (digits->kind != MATH_NUMBER || !is_sign(digits + 1, '}') || digits->text.len > 15)
        return NULL;
    struct math_node *part = number_of(parser, digits);
    if (!part || !part->number.is_whole)
        return NULL;
    char below[64];
    int len = snprintf(below, sizeof(below), "%.*s%.*s", (int)digits->text.len, "999999999999999",
                       number->number.places < 40 ? number->number.places : 0,
                       "0000000000000000000000000000000000000000");
    struct math_token nines = {.kind = MATH_NUMBER, .text = slice_of(below, (size_t)len), .point = (size_t)len};
    struct math_node *divisor = number_of(parser, &nines);
    parser->token += 4;
    struct math_node *quotient = number->number.places < 40 ? node_of_two(parser->tree, MATH_IS_QUOTIENT, part, divisor)
                                                            : NULL;
    if (!quotient)
        return NULL;
    divisor->text = (struct slice){0};
    struct math_node *sum = node_of_two(parser->tree, MATH_IS_SUM, number, quotient);
    if (sum)
        sum->is_mixed = sum->is_bracketed = true;
    return sum;
}

static struct math_node *parse_number(struct parser *parser)
{
    const struct math_token *token = parser->token++;
    struct math_node *number = number_of(parser, token);
    const struct math_token *next = parser->token;
    if (!number)
        return NULL;
    if (number->number.is_whole && next->kind == MATH_NUMBER && next->blank && is_sign(next + 1, '/') &&
        next[2].kind == MATH_NUMBER)
        return mixed_number(parser, number);
    if (token->point < token->text.len && is_command(next, "overline") && is_sign(next + 1, '{'))
        return repeating(parser, number);
    return number;
}

/* A run of letters that stands alone is a word. */
static bool is_word(const struct parser *parser)
{
    const struct math_token *token = parser->token, *after = token + token->word.len;
    bool before_ends = token == parser->tree->tokens.at || token[-1].kind == MATH_RELATION ||
                       (token[-1].kind == MATH_SIGN && strchr(",;o([S", token[-1].sign));
    bool ends = after->kind == MATH_END || after->kind == MATH_RELATION ||
                (after->kind == MATH_SIGN && strchr(",;o)]s", after->sign));
    return before_ends && ends && token->word.len > 1;
}

static struct math_node *parse_name(struct parser *parser)
{
    struct math_node *name = node_new(parser->tree, MATH_IS_NAME);
    if (name)
        name->text = parser->token->text;
    parser->token++;
    return name;
}

static struct math_node *parse_letter(struct parser *parser)
{
    if (!is_word(parser))
        return parse_name(parser);
    struct slice word = parser->token->word;
    struct math_node *product = node_new(parser->tree, MATH_IS_PRODUCT);
    for (size_t i = 0; product && i < word.len; i++) {
        struct math_node *letter = parse_name(parser);
        if (!letter)
            return NULL;
        node_push(product, letter);
    }
    struct math_node *words = node_of(parser->tree, MATH_IS_WORDS, product);
    if (words)
        words->text = word;
    return words;
}

static struct math_node *parse_words(struct parser *parser)
{
    struct math_node *words = parse_name(parser);
    if (words)
        words->kind = MATH_IS_WORDS;
    return words;
}

/* ---- brackets -------------------------------------------------------------------------------------- */

static struct math_node *bracketed(struct math_node *inside, char open, char close)
{
    if (inside->kind == MATH_IS_LIST && !inside->is_bracketed && open != '{') {
        inside->kind = MATH_IS_TUPLE;
        inside->sign = open;
        inside->close = close;
    }
    inside->is_bracketed = true;
    return inside;
}

/* Where the element's separator is ";" and each part is one element, it is as good as a comma. */
static struct math_node *parse_brackets(struct parser *parser)
{
    char open = parser->token++->sign;
    struct math_node *inside = parse_list(parser);
    char close = parser->token->kind == MATH_SIGN ? parser->token->sign : 0;
    if (!inside || (close != ')' && close != ']'))
        return NULL;
    parser->token++;
    if (inside->kind != MATH_IS_LIST && (open == '(') != (close == ')'))
        return NULL;
    return bracketed(inside, open, close);
}

static struct math_node *parse_set(struct parser *parser)
{
    struct math_node *set = node_new(parser->tree, MATH_IS_SET);
    parser->token++;
    if (!set || parser_take(parser, 's'))
        return set;
    struct math_node *inside = parse_list(parser);
    if (!inside)
        return NULL;
    if (parser_take(parser, '|')) { /* \{x | x > 2\} */
        struct math_node *such = parse_list(parser);
        return such && parser_take(parser, 's') ? node_call(parser->tree, "such", inside, such) : NULL;
    }
    if (!parser_take(parser, 's'))
        return NULL;
    if (inside->kind == MATH_IS_LIST && !inside->is_bracketed) {
        inside->kind = MATH_IS_SET;
        return inside;
    }
    node_push(set, inside);
    return set;
}

static struct math_node *parse_braces(struct parser *parser)
{
    parser->token++;
    struct math_node *inside = parse_list(parser);
    if (!inside || !parser_take(parser, '}'))
        return NULL;
    return bracketed(inside, '{', '}');
}

static struct math_node *parse_bars(struct parser *parser)
{
    parser->token++;
    parser->bars++;
    struct math_node *inside = parse_union(parser);
    parser->bars--;
    return inside && parser_take(parser, '|') ? node_call(parser->tree, "abs", inside, NULL) : NULL;
}

/* ---- commands ------------------------------------------------------------------------------------------ */

/* \frac12: the first digit of a number, of which the others remain. */
static struct math_node *parse_digit(struct parser *parser)
{
    struct math_token *token = parser->token;
    struct math_token digit = *token;
    if (token->text.len == 1 || token->text.data[0] == '.')
        return parse_number(parser);
    digit.text.len = digit.point = 1;
    digit.exponent = 0;
    token->text = slice_of(token->text.data + 1, token->text.len - 1);
    token->point--;
    token->blank = false;
    return number_of(parser, &digit);
}

struct math_node *parse_argument(struct parser *parser)
{
    if (is_sign(parser->token, '{'))
        return parse_braces(parser);
    if (parser->token->kind == MATH_NUMBER)
        return parse_digit(parser);
    if (parser->token->kind == MATH_LETTER)
        return parse_name(parser);
    return parse_operand(parser);
}

static struct math_node *parse_root(struct parser *parser)
{
    struct math_node *degree = NULL;
    if (is_sign(parser->token, '[')) {
        parser->token++;
        degree = parse_list(parser);
        if (!degree || !parser_take(parser, ']'))
            return NULL;
    } else {
        degree = node_integer(parser->tree, 2);
    }
    struct math_node *of = parse_argument(parser);
    struct math_node *exponent = node_of_two(parser->tree, MATH_IS_QUOTIENT, node_integer(parser->tree, 1), degree);
    return node_of_two(parser->tree, MATH_IS_POWER, of, exponent);
}

/* \sum_{k=0}^{n} of the product that follows. */
static struct math_node *parse_big(struct parser *parser, struct slice name)
{
    struct math_node *below = node_integer(parser->tree, 0), *above = node_integer(parser->tree, 0);
    for (int i = 0; i < 2; i++) {
        if (parser_take(parser, '_'))
            below = parse_argument(parser);
        else if (parser_take(parser, '^'))
            above = parse_argument(parser);
    }
    struct math_node *call = above ? node_call(parser->tree, "", below, above) : NULL;
    struct math_node *of = parse_factor(parser);
    while (of && parse_begins_operand(parser)) {
        struct math_node *more = parse_factor(parser);
        of = node_of_two(parser->tree, MATH_IS_PRODUCT, of, more);
    }
    if (!call || !of)
        return NULL;
    call->text = name;
    node_push(call, of);
    return call;
}

static struct math_node *parse_rounding(struct parser *parser, const char *close, const char *name)
{
    struct math_node *inside = parse_union(parser);
    if (!inside || !is_command(parser->token, close))
        return NULL;
    parser->token++;
    return node_call(parser->tree, name, inside, NULL);
}

/* The name between the braces of \begin and \end. */
static bool take_environment(struct parser *parser, struct slice *ret)
{
    const struct math_token *token = parser->token;
    if (!is_sign(token, '{') || token[1].kind != MATH_LETTER || !is_sign(token + 1 + token[1].word.len, '}'))
        return false;
    *ret = token[1].word;
    parser->token += 2 + token[1].word.len;
    return true;
}

static bool ends_cell(const struct math_token *token)
{
    return is_sign(token, '&') || is_sign(token, 'r') || is_command(token, "end");
}

/* Rows up to \end; false: not all of them have one number of columns. */
static bool parse_rows(struct parser *parser, struct math_node *matrix)
{
    size_t in_row = 0;
    while (!is_command(parser->token, "end")) {
        struct math_node *cell = parse_list(parser);
        if (!cell || !ends_cell(parser->token))
            return false;
        node_push(matrix, cell);
        in_row++;
        if (parser_take(parser, '&'))
            continue;
        if (matrix->columns && matrix->columns != in_row)
            return false;
        matrix->columns = in_row;
        in_row = 0;
        parser_take(parser, 'r');
    }
    return in_row == 0;
}

static struct math_node *parse_matrix(struct parser *parser)
{
    struct slice name, end;
    struct math_node *matrix = node_new(parser->tree, MATH_IS_MATRIX);
    if (!matrix || !take_environment(parser, &name))
        return NULL;
    bool is_array = slice_is(name, "array"), is_determinant = slice_is(name, "vmatrix");
    if (!is_array && !is_determinant && !slice_is(name, "pmatrix") && !slice_is(name, "bmatrix") &&
        !slice_is(name, "matrix") && !slice_is(name, "smallmatrix"))
        return NULL;
    if (is_array && is_sign(parser->token, '{')) { /* {cc}, {c|c} */
        while (parser->token->kind != MATH_END && !is_sign(parser->token, '}'))
            parser->token++;
        if (!parser_take(parser, '}'))
            return NULL;
    }
    if (!parse_rows(parser, matrix))
        return NULL;
    parser->token++;
    if (!take_environment(parser, &end) || !slice_equal(name, end))
        return NULL;
    return is_determinant ? node_call(parser->tree, "det", matrix, NULL) : matrix;
}

static struct math_node *parse_command(struct parser *parser)
{
    struct slice name = parser->token++->text;
    if (slice_is(name, "frac") || slice_is(name, "binom")) {
        struct math_node *above = parse_argument(parser);
        struct math_node *below = above ? parse_argument(parser) : NULL;
        if (slice_is(name, "frac"))
            return node_of_two(parser->tree, MATH_IS_QUOTIENT, above, below);
        return below ? node_call(parser->tree, "binom", above, below) : NULL;
    }
    if (slice_is(name, "sqrt"))
        return parse_root(parser);
    if (slice_is(name, "begin"))
        return parse_matrix(parser);
    if (slice_is(name, "lfloor"))
        return parse_rounding(parser, "rfloor", "floor");
    if (slice_is(name, "lceil"))
        return parse_rounding(parser, "rceil", "ceil");
    if (slice_is(name, "sum") || slice_is(name, "prod") || slice_is(name, "int") || slice_is(name, "lim"))
        return parse_big(parser, name);
    if (slice_is(name, "overline") || slice_is(name, "vec") || slice_is(name, "hat") || slice_is(name, "pmod")) {
        struct math_node *call = node_call(parser->tree, "", parse_argument(parser), NULL);
        if (call)
            call->text = name;
        return call;
    }
    return NULL;
}

/* ---- functions ------------------------------------------------------------------------------------------- */

static struct math_node *function_argument(struct parser *parser)
{
    if (is_sign(parser->token, '(') || is_sign(parser->token, '{'))
        return parse_operand(parser);
    struct math_node *of = parse_factor(parser);
    while (of && of->kind != MATH_IS_UNIT && parse_begins_operand(parser) && parser->token->kind != MATH_FUNCTION &&
           !is_sign(parser->token, '('))
        of = node_of_two(parser->tree, MATH_IS_PRODUCT, of, parse_factor(parser));
    return of;
}

static bool is_minus_one(const struct math_node *node)
{
    return node->kind == MATH_IS_NEGATIVE && node->first->kind == MATH_IS_NUMBER && node->first->number.residue == 1;
}

static struct slice function_name(struct slice name, bool is_inverse)
{
    static const char *const inverses[][3] = {
        {"sin", "arcsin", "asin"}, {"cos", "arccos", "acos"}, {"tan", "arctan", "atan"}};
    for (size_t i = 0; i < 3; i++)
        if ((is_inverse && slice_is(name, inverses[i][0])) || slice_is(name, inverses[i][2]))
            return slice_from_str(inverses[i][1]);
    return slice_is(name, "ln") ? slice_from_str("log") : name;
}

/* \sin^2 x, \log_2 x, \sin^{-1} x */
static struct math_node *parse_function(struct parser *parser)
{
    struct slice name = parser->token++->text;
    struct math_node *power = NULL, *base = NULL;
    for (int i = 0; i < 2; i++) {
        if (parser_take(parser, '^') && !(power = parse_argument(parser)))
            return NULL;
        if (parser_take(parser, '_') && !(base = parse_argument(parser)))
            return NULL;
    }
    bool is_inverse = power && is_minus_one(power);
    struct math_node *of = function_argument(parser);
    if (of && slice_is(name, "exp")) {
        struct math_node *e = node_new(parser->tree, MATH_IS_NAME);
        if (e)
            e->text = slice_from_str("e");
        return node_of_two(parser->tree, MATH_IS_POWER, e, of);
    }
    struct math_node *call = node_call(parser->tree, "", of, base);
    if (!call)
        return NULL;
    call->text = function_name(name, is_inverse);
    return power && !is_inverse ? node_of_two(parser->tree, MATH_IS_POWER, call, power) : call;
}

/* ---- operands ----------------------------------------------------------------------------------------------- */

bool parse_begins_operand(const struct parser *parser)
{
    const struct math_token *token = parser->token;
    switch (token->kind) {
    case MATH_NUMBER:
    case MATH_LETTER:
    case MATH_SYMBOL:
    case MATH_FUNCTION: return true;
    case MATH_COMMAND:
        return !slice_is(token->text, "end") && !slice_is(token->text, "rfloor") && !slice_is(token->text, "rceil");
    case MATH_SIGN: return strchr("([{S", token->sign) || (token->sign == '|' && parser->bars == 0);
    default: return false;
    }
}

static struct math_node *parse_sign(struct parser *parser)
{
    switch (parser->token->sign) {
    case '(':
    case '[': return parse_brackets(parser);
    case '{': return parse_braces(parser);
    case 'S': return parse_set(parser);
    case '|': return parse_bars(parser);
    default: return NULL;
    }
}

static struct math_node *parse_any(struct parser *parser)
{
    switch (parser->token->kind) {
    case MATH_NUMBER: return parse_number(parser);
    case MATH_LETTER: return parse_letter(parser);
    case MATH_SYMBOL: return parse_name(parser);
    case MATH_WORDS: return parse_words(parser);
    case MATH_FUNCTION: return parse_function(parser);
    case MATH_COMMAND: return parse_command(parser);
    case MATH_SIGN: return parse_sign(parser);
    default: return NULL;
    }
}

struct math_node *parse_operand(struct parser *parser)
{
    if (!parser_enter(parser))
        return NULL;
    struct math_node *operand = parse_any(parser);
    parser_leave(parser);
    return operand;
}
