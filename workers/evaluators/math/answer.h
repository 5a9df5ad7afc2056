/*
 * evaluators/math/answer.h - the answer in a model's last words, and whether it equals another.
 *
 * Two answers are equal when their normal forms (evaluators/math/normal.h) are the same text, or the same
 * number: integers, decimals, fractions, mixed numbers and scientific notation are compared as
 * exact rationals in 128 bits; beyond that whole numbers digit by digit, others to 1e-9.
 * Nothing is computed: "2+2" is not 4, or a question would be its own answer.
 *   percent   50% equals 50%, 0.5 and 50
 *   units     left out on one side they do not matter; given on both they must agree
 *   (a,b) [a,b]      element by element, in order, brackets alike
 *   \{a,b\} and a,b  element by element, in any order
 *   x=5       equals 5
 * Inputs beyond MATH_TEXT_MAX have no answer and equal nothing. No allocation outlives a call.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_ANSWER_H
#define SLUICE_WORKERS_EVALUATORS_MATH_ANSWER_H

#include "common/base/slice.h"

enum { MATH_TEXT_MAX = 65536 };

/* What stands in the last \boxed{...} that is closed; borrowed from text. */
bool math_answer_find(struct slice text, struct slice *ret);
bool math_answer_equal(struct slice a, struct slice b);

#endif
