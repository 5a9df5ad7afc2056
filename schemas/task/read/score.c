/* score: a teacher's engines, and what they go with. */
#include <string.h>

#include "schemas/task/read/task_read.h"

static const char field[] = "score.engine";

bool task_needs_teacher(const struct task *task) { return task->score.engine && task_needs_engine(task); }

uint64_t task_score_s(const struct task *task) { return task_needs_teacher(task) ? task->score.timeout_s : 0; }

const char *task_eval_policy(const struct task *task)
{
    return task_needs_judge(task) ? task->judge.policy : task_needs_teacher(task) ? task->score.engine : NULL;
}

/* It scores in an eval job, once, behind the evaluator. */
static bool check_stage(const struct task *task, struct refusal *no)
{
    if (strcmp(task->kind, "noop") == 0)
        return refuse(no, REFUSAL_BAD_TASK, field, "%s goes with kind sandbox: kind noop samples nothing", field);
    if (task->step_count > 0)
        return refuse(no, REFUSAL_BAD_TASK, field, "%s does not go with steps: a teacher scores in the eval stage",
                      field);
    if (task_is_posted(task))
        return refuse(no, REFUSAL_BAD_TASK, field,
                      "%s does not go with eval.kind posted: a teacher scores in the eval stage, and what is posted "
                      "ends the rollout in its run",
                      field);
    return !task_is_evaluated_there(task) || refuse(no, REFUSAL_BAD_TASK, field,
                                                    "%s goes with eval.sandbox fresh: a teacher scores in the eval "
                                                    "stage, and the agent's own sandbox is evaluated in its run",
                                                    field);
}

/* What says nothing without an engine; NULL: nothing of that kind. */
static const char *needs_engine(const struct task *task, struct task_value score)
{
    return task->score.top_k > 0 ? "score.top_k" : task_value_get(score, "timeout_s").at ? "score.timeout_s" : NULL;
}

bool task_check_score(const struct task *task, struct task_value score, struct refusal *no)
{
    const char *needing = task->score.engine ? NULL : needs_engine(task, score);
    if (needing)
        return refuse(no, REFUSAL_MISSING_FIELD, field, "%s is missing; %s requires it", field, needing);
    if (!task->score.engine)
        return true;
    if (!check_stage(task, no))
        return false;
    return !task_needs_judge(task) || strcmp(task->judge.policy, task->score.engine) == 0 ||
           refuse(no, REFUSAL_BAD_TASK, field,
                  "%s must be eval.judge.policy, %.64s: an evaluation is given one engine, which judges and scores",
                  field, task->judge.policy);
}
