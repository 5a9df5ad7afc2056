#include "workers/evaluators/evaluators.h"

#include <string.h>

static const struct {
    const char *name;
    const struct evaluator *evaluator;
} evaluators[] = {
#define EVAL_RULE(field, evaluators, given, need, handlers)
#define EVALUATOR(name, traits, doc) {#name, &evaluator_##name},
#include "schemas/task/evaluators.def"
};

const struct evaluator *evaluator_find(const char *name)
{
    for (size_t i = 0; i < sizeof(evaluators) / sizeof(evaluators[0]); i++)
        if (strcmp(evaluators[i].name, name) == 0)
            return evaluators[i].evaluator;
    return NULL;
}
