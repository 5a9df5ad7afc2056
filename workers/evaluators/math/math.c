/* The evaluator "math": the agent's last \boxed{} against the task's answer. No sandbox. */
#include "common/base/text.h"
#include "workers/evaluators/evaluator.h"
#include "workers/evaluators/math/answer.h"

enum { SHOWN_MAX = 200 };

static void math_run(struct job *job)
{
    struct slice wanted = slice_from_str(job->task->eval_answer), given = job->start.answer;
    if (wanted.len == 0) {
        job_set_outcome(job, OUTCOME_TASK, "the task has no eval.answer");
        return;
    }
    math_answer_find(wanted, &wanted); /* it may be written as \boxed{} too */
    if (!math_answer_find(given, &given)) {
        evaluator_reward(job, 0.0, "no \\boxed{} in the answer");
        return;
    }
    bool equal = math_answer_equal(given, wanted);
    evaluator_reward(job, equal ? 1.0 : 0.0, "\\boxed{%.*s} %s %.*s", SLICE_ARG(text_cut_slice(given, SHOWN_MAX)),
                     equal ? "equals" : "does not equal", SLICE_ARG(text_cut_slice(wanted, SHOWN_MAX)));
}

const struct evaluator evaluator_math = {
    .name = "math",
    .doc = "1 when the last \\boxed{} of the agent's last words equals eval.answer, else 0.",
    .run = math_run,
};
