/*
 * evaluators/math/answer.h - whether an answer equals the task's. Nothing is run or evaluated as text, no algebra is
 * done: answers are trees (evaluators/math/parse/tree.h); numbers are compared exactly, expressions at random points
 * modulo a large prime, and where roots, logarithms and the like need it as numbers with bounds of their error.
 *
 *   50% equals 50%, 0.5 and 50         a unit left out on one side does not matter; given on both they must agree
 *   (a,b) [a,b]  in order, brackets alike          \{a,b\} and a,b  in any order           x=5 equals 5
 *   x>2 equals (2,\infty)    \pm 2 equals 2,-2     x=1=2 equals 2   1,5 is 1.5 where it cannot be a list
 *
 * The task's answer decides: an answer may not leave work undone that the task's has done (2+2 for 4, \sin 30^\circ for
 * 1/2). An answer longer than MATH_TEXT_MAX, or one that takes more than the work allowed, equals only its own text.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_ANSWER_H
#define SLUICE_WORKERS_EVALUATORS_MATH_ANSWER_H

#include "common/base/slice.h"

struct math_options {
    double relative, absolute; /* tolerances of numbers; 0: none */
};

enum math_verdict { MATH_EQUAL, MATH_DIFFERENT, MATH_UNFINISHED, MATH_NOT_UNDERSTOOD, MATH_TOO_LONG };

enum math_verdict math_compare(struct slice wanted, struct slice given, const struct math_options *options);

#endif
