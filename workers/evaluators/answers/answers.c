/* The evaluators "math", "choice" and "exact": the agent's last words against eval.answer or eval.answers.
 * No sandbox. */
#include "workers/evaluators/answers/grade.h"
#include "workers/evaluators/evaluators.h"

/* What the task says; its words are those of task.def. */
static bool read_options(const struct task *task, struct grade_options *ret)
{
    *ret = (struct grade_options){.relative = task->eval_tolerance, .absolute = task->eval_tolerance_absolute};
    _Static_assert((int)TASK_OPTIONS_MAX == (int)CHOICE_OPTIONS_MAX, "both are A to Z");
    memcpy(ret->options.texts, task->eval_options, sizeof(ret->options.texts));
    ret->options.count = task->eval_option_count;
    return grade_kind_parse(task->eval_kind, &ret->kind) && extract_parse(task->eval_extract, &ret->extract) &&
           normalize_parse(task->eval_normalize, &ret->normalize);
}

static void judge(const struct task *task, struct slice text, struct verdict *ret)
{
    struct grade_options options;
    struct grade grade;
    struct refusal no;
    bool is_one = task->eval_answer != NULL;
    const char *const *accepted = (const char *const *)(is_one ? &task->eval_answer : task->eval_answers);
    size_t count = is_one ? 1 : task->eval_answer_count;
    const char *why = read_options(task, &options) ? grade_refuse(&options, accepted, count)
                                                   : "a word that is not known";
    if (why) {
        verdict_say(ret, "eval.answer: %s", why);
        return;
    }
    grade_text(&options, text, accepted, count, &grade);
    if (verdict_set_reward(ret, grade.is_right ? 1.0 : 0.0, &no))
        verdict_say(ret, "%s", grade.why);
    grade_finish(&grade);
}

static void run(struct job *job)
{
    AUTO_VERDICT verdict = {0};
    judge(job->task, job->start.answer, &verdict);
    evaluator_end(job, &verdict);
}

const struct evaluator evaluator_math = {.run = run};

const struct evaluator evaluator_choice = {.run = run};

const struct evaluator evaluator_exact = {.run = run};
