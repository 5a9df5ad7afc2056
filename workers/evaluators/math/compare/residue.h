/*
 * evaluators/math/compare/residue.h - the value of a tree, exactly and modulo a prime (field.h). Letters have a value
 * that is random and the same in every run; what a letter is in `round` 1 is another number than in round 2. False: it
 * has no value, as 1/0, or the work allowed (fuel, in nodes) is used up.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_RESIDUE_H
#define SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_RESIDUE_H

#include "workers/evaluators/math/parse/tree.h"

struct math_point {
    unsigned round;
    bool minus;    /* \pm is - */
    bool negative; /* some letters are below 0 */
    long *fuel;
    bool is_opaque; /* out: roots, functions and the like were given random values of their own */
};

/* Whole numbers, fractions and powers of them. */
bool math_exact(const struct math_node *node, struct math_point *point, struct math_fraction *ret);
/* Equal values at several points: equal, but for a chance of 2^-50. Others: different, unless the point is opaque. */
bool math_residue(const struct math_node *node, struct math_point *point, uint64_t *ret);

#endif
