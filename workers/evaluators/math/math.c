/* The evaluator "math": the agent's last \boxed{} against the task's answer. No sandbox. */
#include "common/base/text.h"
#include "workers/evaluators/evaluators.h"
#include "workers/evaluators/math/answer.h"

enum { SHOWN_MAX = 200 };

static void judge(struct slice wanted, struct slice given, struct verdict *ret)
{
    math_answer_find(wanted, &wanted); /* it may be written as \boxed{} too */
    bool found = math_answer_find(given, &given), equal = found && math_answer_equal(given, wanted);
    verdict_set_reward(ret, equal ? 1.0 : 0.0, NULL);
    if (found)
        verdict_say(ret, "\\boxed{%.*s} %s %.*s", SLICE_ARG(text_cut_slice(given, SHOWN_MAX)),
                    equal ? "equals" : "does not equal", SLICE_ARG(text_cut_slice(wanted, SHOWN_MAX)));
    else
        verdict_say(ret, "no \\boxed{} in the answer");
}

static void math_run(struct job *job)
{
    AUTO_VERDICT verdict = {0};
    if (job->task->eval_answer)
        judge(slice_from_str(job->task->eval_answer), job->start.answer, &verdict);
    else
        verdict_say(&verdict, "the task has no eval.answer");
    evaluator_end(job, &verdict);
}

const struct evaluator evaluator_math = {
    .name = "math",
    .doc = "1 when the last \\boxed{} of the agent's last words equals eval.answer, else 0.",
    .run = math_run,
};
