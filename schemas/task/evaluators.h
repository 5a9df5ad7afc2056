/* evaluators.h - evaluators.def as rows: the evaluators that are built in, and what a task may say of each. */
#ifndef SLUICE_SCHEMAS_TASK_EVALUATORS_H
#define SLUICE_SCHEMAS_TASK_EVALUATORS_H

#include "schemas/task/task.h"

enum task_evaluator_trait {
    TASK_EVALUATOR_SCORES_FILES = 1,
    TASK_EVALUATOR_READS_RECORD = 2,
    TASK_EVALUATOR_HAS_ANSWER = 4,
    TASK_EVALUATOR_SHOWS_TASK = 8
};

struct task_evaluator {
    const char *name;
    unsigned traits;
};

struct task_eval_rule {
    const char *field, *evaluators, *required; /* "one|of|these", the last of those before it; "" */
    bool handlers_may;
};

/* "|one|of|these": the words of eval.kind begin behind the first bar. And what each does, as one sentence. */
extern const char task_evaluators_words[], task_evaluators_doc[];
#define TASK_EVALUATOR_WORDS (task_evaluators_words + 1)
extern const struct task_evaluator task_evaluators[];
extern const size_t task_evaluator_count;
extern const struct task_eval_rule task_eval_rules[];
extern const size_t task_eval_rule_count;

bool task_evaluator_has(const struct task *task, enum task_evaluator_trait trait);
/* What eval.kind and the other fields of eval say together. */
bool task_check_evaluator(const struct task *task, struct refusal *no);

/* What it says of the sandbox of its evaluator: also of a step as a task (steps.h). */
bool task_check_room(const struct task *task, struct refusal *no);

#endif
