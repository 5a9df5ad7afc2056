/* evaluators.h - the evaluators of schemas/task/evaluators.def: a file, or a function of one, each. */
#ifndef SLUICE_WORKERS_EVALUATORS_EVALUATORS_H
#define SLUICE_WORKERS_EVALUATORS_EVALUATORS_H

#include "workers/evaluators/evaluator.h"

#define EVAL_RULE(field, evaluators, given, need, handlers)
#define EVALUATOR(name, traits, doc) extern const struct evaluator evaluator_##name;
#include "schemas/task/evaluators.def"
#undef EVALUATOR
#undef EVAL_RULE

const struct evaluator *evaluator_find(const char *name); /* NULL: no such evaluator */

#endif
