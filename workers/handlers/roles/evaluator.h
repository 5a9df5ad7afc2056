/* evaluator.h - the evaluators that handlers offer, as one row of the contract of evaluators/evaluator.h. */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_EVALUATOR_H
#define SLUICE_WORKERS_HANDLERS_ROLES_EVALUATOR_H

#include "workers/evaluators/evaluator.h"

extern const struct evaluator evaluator_handler; /* of the name that the task says */

#endif
