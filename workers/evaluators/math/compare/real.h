/*
 * evaluators/math/compare/real.h - the value of a tree at a point (residue.h) as a complex number with a bound of its
 * error. The bound is that of the first order, some times over. Roots of odd degree of numbers below 0 are real, as
 * people mean them.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_REAL_H
#define SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_REAL_H

#include <complex.h>

#include "workers/evaluators/math/compare/residue.h"

struct math_real {
    long double complex value;
    long double error;
    bool is_branch; /* a root or logarithm of what is no number above 0: one of several */
};

/* False: as there, and where the error is as large as a value. */
bool math_real(const struct math_node *node, struct math_point *point, struct math_real *ret);

#endif
