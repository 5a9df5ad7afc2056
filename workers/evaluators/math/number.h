/*
 * evaluators/math/number.h - a number in normal form (evaluators/math/normal.h): exact where 128 bits hold it.
 *   -12  .5  3/4  1 1/2  -1/(-2)  1.5e3  1.5*10^{-3}  50%  5cm  5\text{cm}
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_NUMBER_H
#define SLUICE_WORKERS_EVALUATORS_MATH_NUMBER_H

#include "common/base/slice.h"

__extension__ typedef __int128 math_int128;

struct math_number {
    bool is_exact;
    math_int128 above, below; /* when exact: reduced, below > 0 */
    long double approximate;
    bool is_negative;
    struct slice whole; /* the digits of a whole number without leading zeros; else empty */
    bool is_percent;    /* the value is as written: 50 for 50% */
    char unit[48];      /* "" when none is given */
};

/* False: the text is not a number. Borrows from text. */
bool math_number_parse(const char *text, struct math_number *ret);
bool math_number_equal(const struct math_number *a, const struct math_number *b);

#endif
