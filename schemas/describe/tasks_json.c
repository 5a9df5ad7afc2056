#include "schemas/describe/tasks_json.h"

#include <stdio.h>

#include "schemas/task/evaluators.h"
#include "schemas/task/json/task_table.h"

static const char *const task_type_names[TASK_TYPE_COUNT] = {
    [TASK_OBJECT] = "OBJECT",
    [TASK_NAME] = "NAME",
    [TASK_TEXT] = "TEXT",
    [TASK_PATH] = "PATH",
    [TASK_PLACE] = "PLACE",
    [TASK_IMAGE] = "IMAGE",
    [TASK_DIRECTORY] = "DIRECTORY",
    [TASK_USER] = "USER",
    [TASK_VARIABLES] = "VARIABLES",
    [TASK_WORD] = "WORD",
    [TASK_OPEN_WORD] = "OPEN_WORD",
    [TASK_HANDLER_NAME] = "HANDLER_NAME",
    [TASK_UINT] = "UINT",
    [TASK_INT] = "INT",
    [TASK_REAL] = "REAL",
    [TASK_PROMPT] = "PROMPT",
    [TASK_MESSAGES] = "MESSAGES",
    [TASK_FILES] = "FILES",
    [TASK_EVAL_FILES] = "EVAL_FILES",
    [TASK_SOLUTION_FILES] = "SOLUTION_FILES",
    [TASK_SOLUTION_COMMANDS] = "SOLUTION_COMMANDS",
    [TASK_FILE_TEXT] = "FILE_TEXT",
    [TASK_FILE_BASE64] = "FILE_BASE64",
    [TASK_SOURCE] = "SOURCE",
    [TASK_FILE_SOURCE] = "FILE_SOURCE",
    [TASK_FILE_MODE] = "FILE_MODE",
    [TASK_SETUP] = "SETUP",
    [TASK_STEPS] = "STEPS",
    [TASK_FILE_LIST] = "FILE_LIST",
    [TASK_COMMANDS] = "COMMANDS",
    [TASK_REWARDS] = "REWARDS",
    [TASK_GRANTS] = "GRANTS",
    [TASK_INIT_GRANTS] = "INIT_GRANTS",
    [TASK_BUILD_GRANTS] = "BUILD_GRANTS",
    [TASK_EVAL_GRANTS] = "EVAL_GRANTS",
    [TASK_STATUSES] = "STATUSES",
    [TASK_ANSWERS] = "ANSWERS",
    [TASK_OPTIONS] = "OPTIONS",
    [TASK_FAIL_TO_PASS] = "FAIL_TO_PASS",
    [TASK_PASS_TO_PASS] = "PASS_TO_PASS",
    [TASK_PROTECTED] = "PROTECTED",
    [TASK_EXPECTED_TESTS] = "EXPECTED_TESTS",
    [TASK_HIDDEN] = "HIDDEN",
    [TASK_ARTIFACTS] = "ARTIFACTS",
    [TASK_EXCLUDE] = "EXCLUDE",
    [TASK_COLLECT] = "COLLECT",
    [TASK_HANDLERS] = "HANDLERS",
    [TASK_TESTS] = "TESTS",
    [TASK_JUDGE_FILES] = "JUDGE_FILES",
    [TASK_CRITERIA] = "CRITERIA",
    [TASK_CHOICES] = "CHOICES",
    [TASK_TOOLS] = "TOOLS",
    [TASK_TRAIN] = "TRAIN",
    [TASK_SCRIPT] = "SCRIPT",
    [TASK_RECORDED] = "RECORDED",
    [TASK_ARGUMENTS] = "ARGUMENTS",
    [TASK_METADATA] = "METADATA",
};

static const char task_tool_names[] = "" /* "bash", "edit", ... */
#define TOOL(name) ", \"" #name "\""
#include "schemas/task/tools.def"
#undef TOOL
    ;

static void put_json_words(const char *words)
{
    printf(", \"words\": [\"");
    for (; *words; words++)
        *words == '|' ? fputs("\", \"", stdout) : putchar(*words);
    printf("\"]");
}

static const char *json_bool(bool is) { return is ? "true" : "false"; }

static void put_evaluators(void)
{
    printf(" \"evaluators\": [\n");
    for (size_t i = 0; i < task_evaluator_count; i++)
        printf("  {\"name\": \"%s\", \"has_answer\": %s}%s\n", task_evaluators[i].name,
               json_bool(task_evaluators[i].traits & TASK_EVALUATOR_HAS_ANSWER),
               i + 1 == task_evaluator_count ? "" : ",");
    printf(" ],\n \"eval_rules\": [\n");
    for (size_t i = 0; i < task_eval_rule_count; i++) {
        const struct task_eval_rule *rule = &task_eval_rules[i];
        printf("  {\"field\": \"%s\", \"evaluators\": \"%s\", \"required\": \"%s\", \"handlers\": %s}%s\n", rule->field,
               rule->evaluators, rule->required, json_bool(rule->handlers_may),
               i + 1 == task_eval_rule_count ? "" : ",");
    }
    printf(" ],\n");
}

bool describe_tasks_json(void)
{
    printf("{\n \"tools\": [%s],\n", task_tool_names + 2);
    put_evaluators();
    printf(" \"fields\": [\n");
    for (size_t i = 0; i < task_row_count; i++) {
        const struct task_row *row = &task_rows[i];
        printf("  {\"path\": \"%s\", \"type\": \"%s\", \"required\": %s, \"min\": %.15g, \"max\": %.15g", row->path,
               task_type_names[row->type], json_bool(row->required), row->min, row->max);
        if (row->words)
            put_json_words(row->words);
        if (row->default_value)
            printf(", \"default\": \"%s\"", row->default_value);
        printf("}%s\n", i + 1 == task_row_count ? "" : ",");
    }
    printf(" ]\n}\n");
    return true;
}
