/* evaluators/math/parse/parse_operators.h - unions, sums, products and powers (parse_inside.h). */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_OPERATORS_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_OPERATORS_H

#include "workers/evaluators/math/parse/parse_inside.h"

struct math_node *parse_union(struct parser *parser);
struct math_node *parse_factor(struct parser *parser);

#endif
