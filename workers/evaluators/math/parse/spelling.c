#include "workers/evaluators/math/parse/spelling.h"

/* clang-format off */
static const struct spelling commands[] = {
    {"cdot", MATH_SIGN, '*', NULL}, {"times", MATH_SIGN, '*', NULL}, {"ast", MATH_SIGN, '*', NULL},
    {"div", MATH_SIGN, '/', NULL}, {"pm", MATH_SIGN, 'p', NULL}, {"mp", MATH_SIGN, 'm', NULL},
    {"cup", MATH_SIGN, 'u', NULL}, {"bigcup", MATH_SIGN, 'u', NULL}, {"cap", MATH_SIGN, 'n', NULL},
    {"setminus", MATH_SIGN, 'b', NULL}, {"backslash", MATH_SIGN, 'b', NULL},
    {"lbrace", MATH_SIGN, 'S', NULL}, {"rbrace", MATH_SIGN, 's', NULL},
    {"lparen", MATH_SIGN, '(', NULL}, {"rparen", MATH_SIGN, ')', NULL},
    {"lbrack", MATH_SIGN, '[', NULL}, {"rbrack", MATH_SIGN, ']', NULL},
    {"vert", MATH_SIGN, '|', NULL}, {"lvert", MATH_SIGN, '|', NULL}, {"rvert", MATH_SIGN, '|', NULL},
    {"mid", MATH_SIGN, '|', NULL},
    {"colon", MATH_SIGN, ':', NULL}, {"prime", MATH_SIGN, '\'', NULL},
    {"circ", MATH_SIGN, 'd', NULL}, {"degree", MATH_SIGN, 'd', NULL},
    {"land", MATH_SIGN, 'o', NULL}, {"lor", MATH_SIGN, 'o', NULL}, {"wedge", MATH_SIGN, 'o', NULL},
    {"vee", MATH_SIGN, 'o', NULL},
    {"le", MATH_RELATION, 'l', NULL}, {"leq", MATH_RELATION, 'l', NULL}, {"leqslant", MATH_RELATION, 'l', NULL},
    {"ge", MATH_RELATION, 'g', NULL}, {"geq", MATH_RELATION, 'g', NULL}, {"geqslant", MATH_RELATION, 'g', NULL},
    {"lt", MATH_RELATION, '<', NULL}, {"gt", MATH_RELATION, '>', NULL}, {"ne", MATH_RELATION, '!', NULL},
    {"neq", MATH_RELATION, '!', NULL},
    {"approx", MATH_RELATION, '~', NULL}, {"simeq", MATH_RELATION, '~', NULL}, {"sim", MATH_RELATION, '~', NULL},
    {"in", MATH_RELATION, 'e', NULL}, {"to", MATH_RELATION, 't', NULL}, {"rightarrow", MATH_RELATION, 't', NULL},
    {"frac", MATH_COMMAND, 0, NULL}, {"dfrac", MATH_COMMAND, 0, "frac"}, {"tfrac", MATH_COMMAND, 0, "frac"},
    {"cfrac", MATH_COMMAND, 0, "frac"},
    {"sqrt", MATH_COMMAND, 0, NULL}, {"binom", MATH_COMMAND, 0, NULL}, {"dbinom", MATH_COMMAND, 0, "binom"},
    {"tbinom", MATH_COMMAND, 0, "binom"},
    {"begin", MATH_COMMAND, 0, NULL}, {"end", MATH_COMMAND, 0, NULL},
    {"lfloor", MATH_COMMAND, 0, NULL}, {"rfloor", MATH_COMMAND, 0, NULL}, {"lceil", MATH_COMMAND, 0, NULL},
    {"rceil", MATH_COMMAND, 0, NULL},
    {"langle", MATH_SIGN, '(', NULL}, {"rangle", MATH_SIGN, ')', NULL},
    {"overline", MATH_COMMAND, 0, NULL}, {"bar", MATH_COMMAND, 0, "overline"}, {"vec", MATH_COMMAND, 0, NULL},
    {"hat", MATH_COMMAND, 0, NULL},
    {"overrightarrow", MATH_COMMAND, 0, "vec"}, {"pmod", MATH_COMMAND, 0, NULL},
    {"sum", MATH_COMMAND, 0, NULL}, {"prod", MATH_COMMAND, 0, NULL}, {"int", MATH_COMMAND, 0, NULL},
    {"lim", MATH_COMMAND, 0, NULL},
    {"varnothing", MATH_SYMBOL, 0, "emptyset"}, {"varphi", MATH_SYMBOL, 0, "phi"},
    {"varepsilon", MATH_SYMBOL, 0, "epsilon"},
};

/* Commands that only steer how it looks: nothing remains. */
static const char *const looks[] = {
    "left", "right", "displaystyle", "textstyle", "limits", "nolimits", "big", "Big", "bigl", "bigr", "Bigl",
    "Bigr", "bigg", "Bigg",
    "biggl", "biggr", "mathbf", "boldsymbol", "mathit", "mathsf", "mathcal", "mathbb", "bf", "rm", "it", "boxed",
    "fbox", "angle",
    "triangle", "nonumber", "middle", "mathop", "ensuremath", "phantom", "mathstrut", "strut", "hline", "bm",
    "pounds", "euro",
};

static const char *const text_commands[] = {"text", "textbf", "textit", "textrm", "textnormal",
                                             "mbox", "hbox",   "textsf", "texttt", "emph"};
static const char *const functions[] = {
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "ln", "log",
    "lg", "exp",
    "gcd", "lcm", "min", "max", "det", "abs", "floor", "ceil", "asin", "acos", "atan",
};

/* Runs of letters that are no product of letters. */
static const struct spelling words[] = {
    {"and", MATH_SIGN, 'o', NULL}, {"or", MATH_SIGN, 'o', NULL}, {"sqrt", MATH_COMMAND, 0, NULL},
    {"pi", MATH_SYMBOL, 0, NULL},
    {"infinity", MATH_SYMBOL, 0, "infty"}, {"inf", MATH_SYMBOL, 0, "infty"}, {"oo", MATH_SYMBOL, 0, "infty"},
    {"infty", MATH_SYMBOL, 0, NULL},
    {"theta", MATH_SYMBOL, 0, NULL}, {"percent", MATH_SIGN, '%', NULL}, {"percentage", MATH_SIGN, '%', NULL},
    {"pct", MATH_SIGN, '%', NULL},
    {"degrees", MATH_SIGN, 'd', NULL}, {"degree", MATH_SIGN, 'd', NULL},
};

static const struct spelling signs[] = {
    {"\u20ac", MATH_END, 0, NULL}, {"\u00a3", MATH_END, 0, NULL}, {"\u00a5", MATH_END, 0, NULL},
    {"\u00b2", MATH_NUMBER, 0, "2"}, {"\u00b3", MATH_NUMBER, 0, "3"},
    {"\u2212", MATH_SIGN, '-', NULL}, {"\u2013", MATH_SIGN, '-', NULL}, {"\u00d7", MATH_SIGN, '*', NULL},
    {"\u00b7", MATH_SIGN, '*', NULL},
    {"\u22c5", MATH_SIGN, '*', NULL}, {"\u00f7", MATH_SIGN, '/', NULL}, {"\u2215", MATH_SIGN, '/', NULL},
    {"\u00b1", MATH_SIGN, 'p', NULL},
    {"\u2264", MATH_RELATION, 'l', NULL}, {"\u2265", MATH_RELATION, 'g', NULL}, {"\u2260", MATH_RELATION, '!', NULL},
    {"\u2248", MATH_RELATION, '~', NULL}, {"\u2208", MATH_RELATION, 'e', NULL}, {"\u222a", MATH_SIGN, 'u', NULL},
    {"\u2229", MATH_SIGN, 'n', NULL},
    {"\u00b0", MATH_SIGN, 'd', NULL}, {"\u221a", MATH_COMMAND, 0, "sqrt"}, {"\u221e", MATH_SYMBOL, 0, "infty"},
    {"\u03c0", MATH_SYMBOL, 0, "pi"},
    {"\u03b1", MATH_SYMBOL, 0, "alpha"}, {"\u03b2", MATH_SYMBOL, 0, "beta"}, {"\u03b8", MATH_SYMBOL, 0, "theta"},
    {"\u03bb", MATH_SYMBOL, 0, "lambda"},
    {"\u2205", MATH_SYMBOL, 0, "emptyset"}, {"\u211d", MATH_LETTER, 0, "R"},
    {"**", MATH_SIGN, '^', NULL}, {"<=", MATH_RELATION, 'l', NULL}, {">=", MATH_RELATION, 'g', NULL},
    {"!=", MATH_RELATION, '!', NULL},
    {"==", MATH_RELATION, '=', NULL}, {"->", MATH_RELATION, 't', NULL}, {"+-", MATH_SIGN, 'p', NULL},
    {"=", MATH_RELATION, '=', NULL},
    {"<", MATH_RELATION, '<', NULL}, {">", MATH_RELATION, '>', NULL},
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Most differ in their first byte. */
static bool is_word(struct slice text, const char *word)
{
    return text.len && text.data[0] == (uint8_t)word[0] && slice_is(text, word);
}

const struct spelling *spelling_find(enum spelling_table table, struct slice text)
{
    const struct spelling *rows = table == SPELLING_COMMANDS ? commands : words;
    size_t count = table == SPELLING_COMMANDS ? COUNT(commands) : COUNT(words);
    for (size_t i = 0; i < count; i++)
        if (is_word(text, rows[i].text))
            return &rows[i];
    return NULL;
}

const struct spelling *spelling_begin(struct slice text, size_t *ret_len)
{
    for (size_t i = 0; i < COUNT(signs); i++) {
        if (!text.len || text.data[0] != (uint8_t)signs[i].text[0])
            continue;
        *ret_len = strlen(signs[i].text);
        if (text.len >= *ret_len && memcmp(text.data, signs[i].text, *ret_len) == 0)
            return &signs[i];
    }
    return NULL;
}

static bool has_word(const char *const *list, size_t count, struct slice text)
{
    for (size_t i = 0; i < count; i++)
        if (is_word(text, list[i]))
            return true;
    return false;
}

bool spelling_is_function(struct slice name) { return has_word(functions, COUNT(functions), name); }
bool spelling_is_look(struct slice command) { return has_word(looks, COUNT(looks), command); }
bool spelling_is_text(struct slice command) { return has_word(text_commands, COUNT(text_commands), command); }
