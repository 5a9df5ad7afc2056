/* evaluators/math/parse/parse.h - from an answer's text to its tree. */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_PARSE_H

#include "workers/evaluators/math/parse/tree.h"

/* False: it is no expression, list or relation that is understood; *ret needs no finish. */
bool math_parse(struct slice text, enum math_comma comma, struct math_tree *ret);

#endif
