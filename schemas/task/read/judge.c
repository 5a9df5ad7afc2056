/* eval.judge: what a model judges and how: its criteria, and what its fields say together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/task/read/task_read.h"

static const char criteria_path[] = "eval.judge.criteria[]";

bool task_needs_judge(const struct task *task)
{
    return strcmp(task->kind, "noop") != 0 && strcmp(task->eval_kind, "judge") == 0;
}

bool task_judge_reads(const struct task *task, const char *view)
{
    return task_needs_judge(task) && strcmp(task->judge.view, view) == 0;
}

bool task_criterion_is_number(const struct task_criterion *criterion)
{
    return criterion->choice_count == 0 && criterion->min < criterion->max;
}

/* ---- lists ----------------------------------------------------------------------------------- */

bool task_read_judge_files(const struct task_place *place, struct task_value value)
{
    static const struct task_row path_row = {.type = TASK_PATH, .min = 1, .max = 4096};
    struct task *task = place->base;
    return place_read_each(place, value, &path_row, &task->judge.files, &task->judge.file_count);
}

/* From the worst to the best; none is another's text, as it is by its text that one is chosen. */
bool task_read_choices(const struct task_place *place, struct task_value value)
{
    static const struct task_row choice_row = {.type = TASK_TEXT, .min = 1, .max = 128};
    struct task_criterion *criterion = place->base;
    if (!place_read_each(place, value, &choice_row, &criterion->choices, &criterion->choice_count))
        return false;
    for (size_t i = 0; i < criterion->choice_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(criterion->choices[i], criterion->choices[k]) == 0)
                return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s: '%.60s' is given twice", place->shown,
                              criterion->choices[i]);
    return true;
}

static bool check_criterion(const struct task_place *place, const struct task_judge *judge,
                            const struct task_criterion *criterion)
{
    struct refusal *no = place->no;
    char field[sizeof(no->field)];
    for (size_t i = 0; i < judge->criterion_count; i++)
        if (strcmp(judge->criteria[i].name, criterion->name) == 0)
            return refuse(no, REFUSAL_BAD_TASK, place->shown, "%s: the name %s is given twice", place->shown,
                          criterion->name);
    snprintf(field, sizeof(field), "%.100s.max", place->shown);
    if (criterion->min > criterion->max)
        return refuse(no, REFUSAL_BAD_TASK, field, "%s must be above min", field);
    if (criterion->choice_count > 0 && criterion->min < criterion->max)
        return refuse(no, REFUSAL_AMBIGUOUS, place->shown, "%s must have either choices or min and max, not both",
                      place->shown);
    return true;
}

static bool read_criterion(const struct task_place *place, struct task_value value, void *into)
{
    const struct task *task = place->base;
    task_read_defaults(criteria_path, into);
    return task_read_object(place, criteria_path, value, into) && check_criterion(place, &task->judge, into);
}

bool task_read_criteria(const struct task_place *place, struct task_value value)
{
    struct task_judge *judge = &((struct task *)place->base)->judge;
    return place_read_list(place, value, sizeof(*judge->criteria), read_criterion, &judge->criteria,
                           &judge->criterion_count);
}

/* ---- what several fields say together ----------------------------------------------------------- */

static bool check_what(const struct task_judge *judge, struct refusal *no)
{
    double sum = 0;
    if (judge->reference && judge->criterion_count > 0)
        return refuse(no, REFUSAL_AMBIGUOUS, "eval.judge.reference",
                      "only one of eval.judge.criteria and eval.judge.reference may be given");
    if (!judge->reference && judge->criterion_count == 0)
        return refuse(no, REFUSAL_MISSING_FIELD, "eval.judge.criteria",
                      "eval.judge.criteria is missing: give it or eval.judge.reference");
    for (size_t i = 0; i < judge->criterion_count; i++)
        sum += judge->criteria[i].weight;
    return judge->reference || sum > 0 ||
           refuse(no, REFUSAL_BAD_TASK, "eval.judge.criteria",
                  "eval.judge.criteria must have one with a weight above 0");
}

static bool check_view(const struct task_judge *judge, struct refusal *no)
{
    const bool is_files = strcmp(judge->view, "files") == 0;
    if (is_files && judge->file_count == 0)
        return refuse(no, REFUSAL_MISSING_FIELD, "eval.judge.files",
                      "eval.judge.files is missing; eval.judge.view files requires it");
    return is_files || judge->file_count == 0 ||
           refuse(no, REFUSAL_BAD_TASK, "eval.judge.files",
                  "eval.judge.files goes with eval.judge.view files, and this task's is %s", judge->view);
}

static bool check_prompt(const struct task_judge *judge, struct refusal *no)
{
    static const char *const places[] = {"{judged}", "{reply}"};
    for (size_t i = 0; judge->prompt && i < sizeof(places) / sizeof(*places); i++)
        if (!strstr(judge->prompt, places[i]))
            return refuse(
                no, REFUSAL_BAD_TASK, "eval.judge.prompt",
                "eval.judge.prompt must hold %s: what is judged goes to {judged}, and how to reply to {reply}",
                places[i]);
    return true;
}

/* Longer than any call may last, so that a judge that hangs is found out before. */
enum { JUDGED_S = 1200 };

bool task_check_judge(struct task *task, struct task_value limits, struct refusal *no)
{
    const struct task_judge *judge = &task->judge;
    if (strcmp(task->eval_kind, "judge") != 0)
        return true;
    if (!task_value_get(limits, "eval_s").at)
        task->limits.eval_s = JUDGED_S;
    if (!check_what(judge, no) || !check_view(judge, no) || !check_prompt(judge, no))
        return false;
    if (judge->samples > 1 && judge->temperature <= 0)
        return refuse(no, REFUSAL_BAD_TASK, "eval.judge.temperature",
                      "eval.judge.temperature must be above 0 where eval.judge.samples is above 1: else all replies "
                      "are the same");
    return !task_needs_engine(task) || strcmp(task->policy, judge->policy) != 0 || strcmp(judge->self, "allow") == 0 ||
           refuse(no, REFUSAL_BAD_TASK, "eval.judge.policy",
                  "eval.judge.policy is the task's own policy, %.64s, which would judge itself: name another, or say "
                  "\"self\": \"allow\"",
                  judge->policy);
}
