/* evaluators.h - the rows of the table of evaluators (evaluators.c). */
#ifndef SLUICE_WORKERS_EVALUATORS_EVALUATORS_H
#define SLUICE_WORKERS_EVALUATORS_EVALUATORS_H

#include "workers/evaluators/evaluator.h"

extern const struct evaluator evaluator_command;                                 /* evaluators/command.c */
extern const struct evaluator evaluator_verifier;                                /* evaluators/verifier/verifier.c */
extern const struct evaluator evaluator_code;                                    /* evaluators/code/code.c */
extern const struct evaluator evaluator_swe;                                     /* evaluators/swe/swe.c */
extern const struct evaluator evaluator_math, evaluator_choice, evaluator_exact; /* evaluators/answers/answers.c */
extern const struct evaluator evaluator_judge;                                   /* evaluators/judge/judge.c */

const struct evaluator *evaluator_find(const char *name); /* NULL: no such evaluator */

#endif
