#include "schemas/task/evaluators.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "schemas/task/steps.h"

#define EVAL_RULE(field, evaluators, given, need, handlers)
#define EVALUATOR(name, traits, doc) "|" #name
const char task_evaluators_words[] =
#include "schemas/task/evaluators.def"
    ;
#undef EVALUATOR

#define EVALUATOR(name, traits, doc) #name " " doc "; "
const char task_evaluators_doc[] =
#include "schemas/task/evaluators.def"
    "any other name is that of an evaluator which a handler offers (docs/handlers.md).";
#undef EVALUATOR

#define SCORES_FILES TASK_EVALUATOR_SCORES_FILES
#define READS_RECORD TASK_EVALUATOR_READS_RECORD
#define HAS_ANSWER TASK_EVALUATOR_HAS_ANSWER
#define SHOWS_TASK TASK_EVALUATOR_SHOWS_TASK
#define EVALUATOR(name, traits, doc) {#name, traits},
const struct task_evaluator task_evaluators[] = {
#include "schemas/task/evaluators.def"
};
#undef EVALUATOR
#undef EVAL_RULE

#define NONE ""
#define HANDLERS true
#define ELSE_NONE false
#define EVALUATOR(name, traits, doc)
#define EVAL_RULE(field, evaluators, given, need, handlers) {field, evaluators, need, handlers},
const struct task_eval_rule task_eval_rules[] = {
#include "schemas/task/evaluators.def"
};
#undef EVAL_RULE

const size_t task_evaluator_count = sizeof(task_evaluators) / sizeof(task_evaluators[0]);
const size_t task_eval_rule_count = sizeof(task_eval_rules) / sizeof(task_eval_rules[0]);

static const struct task_evaluator *evaluator_of(const struct task *task)
{
    for (size_t i = 0; i < task_evaluator_count; i++)
        if (strcmp(task_evaluators[i].name, task->eval_kind) == 0)
            return &task_evaluators[i];
    return NULL;
}

bool task_evaluator_has(const struct task *task, enum task_evaluator_trait trait)
{
    const struct task_evaluator *evaluator = evaluator_of(task);
    return evaluator && (evaluator->traits & trait);
}

bool task_evaluator_is_built_in(const struct task *task) { return evaluator_of(task) != NULL; }

static bool check_answers(const struct task *task, struct refusal *no)
{
    if (task->eval_answer && task->eval_answer_count > 0)
        return refuse(no, REFUSAL_AMBIGUOUS, "eval.answers", "only one of eval.answer and eval.answers may be given");
    if (task->eval_answer || task->eval_answer_count > 0 || !task_evaluator_has(task, TASK_EVALUATOR_HAS_ANSWER))
        return true;
    return refuse(no, REFUSAL_MISSING_FIELD, "eval.answer",
                  "eval.answer is missing; eval.kind %s requires it, or eval.answers", task->eval_kind);
}

static bool has_eval_file(const struct task *task, const char *path)
{
    for (size_t i = 0; i < task->eval_file_count; i++)
        if (strcmp(task->eval_files[i].path, path) == 0)
            return true;
    return false;
}

static bool check_checker(const struct task *task, struct refusal *no)
{
    static const char field[] = "eval.checker_program";
    const bool is_code = strcmp(task->eval_kind, "code") == 0, is_program = strcmp(task->eval_checker, "program") == 0;
    if (is_program && !task->eval_checker_program)
        return refuse(no, REFUSAL_MISSING_FIELD, field, "%s is missing; eval.checker program requires it", field);
    if (task->eval_checker_program && !is_program)
        return refuse(no, REFUSAL_BAD_TASK, field, "%s goes with eval.checker program, and this task's is %s", field,
                      task->eval_checker);
    if (is_code && task->eval_file_count > 0 && !is_program)
        return refuse(no, REFUSAL_BAD_TASK, "eval.files",
                      "eval.files of eval.kind code go with eval.checker program, "
                      "and this task's is %s",
                      task->eval_checker);
    if (is_program && !has_eval_file(task, task->eval_checker_program))
        return refuse(no, REFUSAL_BAD_TASK, field, "%s must be the path of one of eval.files", field);
    return !is_program || strstr(task->eval_tests, "\"outputs\":") ||
           refuse(no, REFUSAL_BAD_TASK, "eval.tests", "eval.tests must have outputs for eval.checker program to judge");
}

/* What only a sandbox of the evaluator's own can have. */
static bool check_agents_sandbox(const struct task *task, struct refusal *no)
{
    const bool is_other = task->eval_user && (!task->user || strcmp(task->eval_user, task->user) != 0);
    const struct {
        const char *field;
        bool given;
    } rows[] = {{"eval.artifacts", task->artifacts.each},
                {"eval.trust", strcmp(task->eval_trust, "none") != 0},
                {"eval.network", task->eval_grant_count > 0},
                {"eval.image", task->eval_image},
                {"eval.build.dockerfile", task->eval_build.dockerfile},
                {"eval.workdir", task->eval_workdir},
                {"eval.user", is_other}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && task_is_evaluated_there(task); i++)
        if (rows[i].given)
            return refuse(no, REFUSAL_BAD_TASK, rows[i].field,
                          "%s goes with eval.sandbox fresh: in the agent's own all is as the agent had it",
                          rows[i].field);
    return true;
}

static bool check_own_image(const struct task *task, struct refusal *no)
{
    const char *field = task->eval_image ? "eval.image" : "eval.build.dockerfile";
    if (task->eval_image && task->eval_build.dockerfile)
        return refuse(no, REFUSAL_AMBIGUOUS, "eval.build.dockerfile",
                      "only one of eval.image and eval.build may be given");
    return !task_has_own_image(task) || task->artifacts.each ||
           refuse(no, REFUSAL_MISSING_FIELD, "eval.artifacts",
                  "eval.artifacts is missing; %s requires it: of the agent's files an image of its own has what that "
                  "lists, and may be []",
                  field);
}

/* At or in it, by an absolute path. */
static bool is_of_tests(const char *path)
{
    static const size_t len = sizeof(TASK_STEP_TESTS) - 1;
    if (path[0] != '/')
        return false;
    while (path[0] == '/' && (path[1] == '/' || (path[1] == '.' && path[2] == '/')))
        path += path[1] == '/' ? 1 : 2;
    return strncmp(path, TASK_STEP_TESTS, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Where a verifier's tests lie, in its image or by eval.files, the agent's must not. */
static bool check_artifacts(const struct task *task, struct refusal *no)
{
    char path[sizeof(no->field)];
    for (size_t i = 0; i < task->artifacts.count && task_has_verifier(task); i++) {
        snprintf(path, sizeof(path), "eval.artifacts[%zu].path", i);
        if (is_of_tests(task->artifacts.each[i].path))
            return refuse(no, REFUSAL_BAD_TASK, path,
                          "%s must not be " TASK_STEP_TESTS " or below it: there lies what eval.kind verifier judges "
                          "by, and the agent's would take its place",
                          path);
    }
    return true;
}

bool task_check_room(const struct task *task, struct refusal *no)
{
    return check_agents_sandbox(task, no) && check_own_image(task, no) && check_artifacts(task, no);
}

static bool check_rule(const struct task *task, const struct task_eval_rule *rule, bool given, struct refusal *no)
{
    if (!given)
        return !*rule->required || !text_is_one_of(task->eval_kind, rule->required) ||
               refuse(no, REFUSAL_MISSING_FIELD, rule->field, "%s is missing; eval.kind %s requires it", rule->field,
                      task->eval_kind);
    return text_is_one_of(task->eval_kind, rule->evaluators) ||
           (rule->handlers_may && !task_evaluator_is_built_in(task)) ||
           refuse(no, REFUSAL_BAD_TASK, rule->field, "%s goes with eval.kind %s, and this task's is %s", rule->field,
                  rule->evaluators, task->eval_kind);
}

/* By a loop that has been there. */
static bool check_posted(const struct task *task, struct refusal *no)
{
    return !task_is_posted(task) || strcmp(task->agent_kind, TASK_SESSION) == 0 ||
           refuse(no, REFUSAL_BAD_TASK, "eval.kind",
                  "eval.kind posted goes with agent.kind session, and this task's is %s", task->agent_kind);
}

bool task_check_evaluator(const struct task *task, struct refusal *no)
{
    const bool given[] = {
#define EVAL_RULE(field, evaluators, given, need, handlers) given,
#include "schemas/task/evaluators.def"
    };
    for (size_t i = 0; i < task_eval_rule_count; i++)
        if (!check_rule(task, &task_eval_rules[i], given[i], no))
            return false;
    if (task->eval_status_count > 0 && task->eval_reward_file)
        return refuse(no, REFUSAL_AMBIGUOUS, "eval.verdict_statuses",
                      "only one of eval.reward_file and eval.verdict_statuses may be given: where "
                      "there is a reward file, "
                      "status 0 alone is a verdict");
    return task_check_room(task, no) && check_checker(task, no) && check_answers(task, no) && check_posted(task, no);
}
