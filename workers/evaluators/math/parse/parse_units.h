/* evaluators/math/parse/parse_units.h - the unit that follows a value: cm, \text{square feet}, m/s^2. */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_UNITS_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_UNITS_H

#include "workers/evaluators/math/parse/parse_inside.h"

/* Whether the unit of `value` stands here: one letter only after a blank, and any words of a \text{}. */
bool parse_begins_unit(const struct parser *parser, const struct math_node *value);
/* The value with its unit, or as it is where none stands here. */
struct math_node *parse_unit(struct parser *parser, struct math_node *value);

#endif
