/* evaluators/math/parse/parse_operands.h - numbers, names, commands with their arguments, and brackets
 * (parse_inside.h). */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_OPERANDS_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_OPERANDS_H

#include "workers/evaluators/math/parse/parse_inside.h"

struct math_node *parse_operand(struct parser *parser);
/* {...}, or one token: a digit, a letter, a command. */
struct math_node *parse_argument(struct parser *parser);
/* Whether an operand can begin here without a sign before it. */
bool parse_begins_operand(const struct parser *parser);

#endif
