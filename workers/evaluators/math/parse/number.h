/*
 * evaluators/math/parse/number.h - a number as digits say it: exact where 128 bits hold it, modulo a prime however long
 * it is, and approximately.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_NUMBER_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_NUMBER_H

#include "workers/evaluators/math/parse/scan.h"

__extension__ typedef __int128 math_int128;

struct math_number {
    bool is_exact, is_whole;  /* is_whole: without a point or an exponent */
    math_int128 above, below; /* when exact: reduced, below > 0 */
    uint64_t residue;         /* field.h */
    long double approximate;  /* perhaps infinite */
    int last_power;           /* the last digit is worth 10 to this power */
    int places, significant;  /* digits after the point; digits from the first that is not 0 */
};

/* False: no digits at all, or an exponent too large to mean anything. */
bool math_number_read(const struct math_token *token, struct math_number *ret);

/* Exact arithmetic: is_exact is false where 128 bits do not hold the result, or b is 0. */
struct math_fraction {
    bool is_exact;
    math_int128 above, below;
};
struct math_fraction math_fraction_add(struct math_fraction a, struct math_fraction b);
struct math_fraction math_fraction_multiply(struct math_fraction a, struct math_fraction b);
struct math_fraction math_fraction_divide(struct math_fraction a, struct math_fraction b);

#endif
