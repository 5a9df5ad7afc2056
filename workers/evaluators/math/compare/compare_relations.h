/* evaluators/math/compare/compare_relations.h - equations, inequalities and the intervals they mean (compare.h). */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_COMPARE_RELATIONS_H
#define SLUICE_WORKERS_EVALUATORS_MATH_COMPARE_COMPARE_RELATIONS_H

#include "workers/evaluators/math/compare/compare.h"

/* One of them is a relation. */
bool compare_relations(struct comparison *comparison, struct view wanted, struct view given);
/* What an equation says its left side is; false: it is none that is solved. The name is NULL for 2+2=4. */
bool equation_solve(const struct math_node *relation, const struct math_node **ret_name,
                    const struct math_node **ret_value);

#endif
