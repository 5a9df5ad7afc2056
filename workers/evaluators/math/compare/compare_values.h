/* evaluators/math/compare/compare_values.h - whether two expressions are one (compare.h). */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_COMPARE_VALUES_H
#define SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_COMPARE_VALUES_H

#include "workers/evaluators/math/compare/compare.h"

bool compare_values(struct comparison *comparison, struct view wanted, struct view given);
/* One value, with no regard to what is unfinished, and with no tolerance. */
bool values_same(struct comparison *comparison, struct view a, struct view b);
/* a - b is a multiple of c - d that does not depend on letters; is_positive: and above 0. */
bool differences_proportional(struct comparison *comparison, struct view wanted, struct view given, bool is_positive);

bool has_letters(const struct math_node *node);
/* 12, -1.5, 3/4, 1 1/2, 2*10^5 */
bool is_plain_number(const struct math_node *node);

#endif
