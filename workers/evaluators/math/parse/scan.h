/*
 * evaluators/math/parse/scan.h - an answer in LaTeX, or as people type it, as tokens. What only steers how it looks
 * (\left, \!, $, \displaystyle, \mathbf, currency signs) is gone; \dfrac is frac, \leq and <= are one relation.
 *
 * A comma between digits is read in one of two ways. MATH_COMMA_SEPARATES: it separates. MATH_COMMA_GROUPS: outside of
 * brackets it groups thousands (1,234) or is a decimal comma (3,14; 0,125). Blanks, \, and {,} group wherever they
 * stand.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_SCAN_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_SCAN_H

#include "common/base/slice.h"

enum { MATH_TEXT_MAX = 8192, MATH_TOKENS_MAX = 2048 };
enum math_comma { MATH_COMMA_SEPARATES, MATH_COMMA_GROUPS };

enum math_token_kind {
    MATH_END,
    MATH_NUMBER,   /* text: the digits with what groups them */
    MATH_LETTER,   /* one letter; word: the rest of its run of letters */
    MATH_SYMBOL,   /* a letter with a name: alpha, pi, infty */
    MATH_FUNCTION, /* sin, log, exp */
    MATH_COMMAND,  /* frac, sqrt, begin, sum */
    MATH_WORDS,    /* \text{...} */
    MATH_RELATION, /* sign: = < > l (<=) g (>=) ! ~ e (in) t (to) */
    MATH_SIGN,     /* sign: one of + - * / ^ _ ! ' | : , ; & ( [ { S ) ] } s % d p m u n b o
                      S s: \{ \}   d: degree   p m: \pm \mp   u n b: \cup \cap \setminus   o: and, or   r: \\ */
};

struct math_token {
    enum math_token_kind kind;
    char sign;
    bool blank;        /* blanks stand before it */
    struct slice text; /* borrowed from the text, or static */
    struct slice word; /* MATH_LETTER */
    size_t point;      /* MATH_NUMBER: where in text the decimal point is; text.len without one */
    int exponent;      /* MATH_NUMBER: of 1.5e3 */
};

struct math_tokens {
    struct math_token *at; /* the last is MATH_END; free() it */
    size_t count;
    bool has_ambiguous_comma; /* the other reading may differ */
};

/* False: too long, too many tokens, bytes that are not UTF-8 or stand for nothing known; no memory. */
bool math_scan(struct slice text, enum math_comma comma, struct math_tokens *ret);

#endif
