/* Who works on a task: agent.kind and agent.tools, and how they and what a replay calls follow from
 * each other. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "schemas/labels.h"
#include "schemas/task/evaluators.h"
#include "schemas/task/read/task_read.h"

static const char *const tool_names[] = {
#define TOOL(name) #name,
#include "schemas/task/tools.def"
#undef TOOL
};

static bool has_tool(const struct task *task, const char *name)
{
    for (size_t i = 0; i < task->tool_count; i++)
        if (strcmp(task->tools[i], name) == 0)
            return true;
    return false;
}

/* ---- tools ---------------------------------------------------------------------------- */

bool task_tool_is_built_in(const char *name)
{
    for (size_t i = 0; i < sizeof(tool_names) / sizeof(tool_names[0]); i++)
        if (strcmp(tool_names[i], name) == 0)
            return true;
    return false;
}

const char *task_tool_built_in(size_t n)
{
    return n < sizeof(tool_names) / sizeof(tool_names[0]) ? tool_names[n] : NULL;
}

static bool read_tool(const struct task_place *place, struct task_value value, void *into)
{
    static const struct task_row tool_row = {.type = TASK_HANDLER_NAME, .min = 1, .max = HANDLER_NAME_MAX};
    struct task_place at = *place;
    const char *name = place_text(place, value);
    if (!name)
        return false;
    if (has_tool(place->base, name))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s is given twice", place->shown);
    at.row = &tool_row;
    return place_set_handler_name(&at, into, name);
}

bool task_read_tools(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return place_read_list(place, value, sizeof(*task->tools), read_tool, &task->tools, &task->tool_count);
}

/* The names are static, or the task's own. */
static bool add_tools(struct task *task, const char *const names[], size_t count, struct refusal *no)
{
    const char **tools = arena_alloc(&task->arena, (task->tool_count + count) * sizeof(*tools));
    if (!tools)
        return refuse(no, REFUSAL_TOO_LARGE, "agent.tools", "no memory to hold agent.tools");
    for (size_t i = 0; i < task->tool_count; i++)
        tools[i] = task->tools[i];
    task->tools = tools;
    for (size_t i = 0; i < count; i++)
        if (!has_tool(task, names[i]))
            tools[task->tool_count++] = names[i];
    return true;
}

/* ---- what is learned from ----------------------------------------------------------------- */

static bool read_label(const struct task_place *place, struct task_value value, uint32_t *labels)
{
    const char *word = place_text(place, value);
    if (!word)
        return false;
    const enum label label = label_find(word);
    if (label == LABEL_COUNT)
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s must be one of %s", place->shown, label_words());
    if (labels_have(*labels, label))
        return refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s is given twice", place->shown);
    *labels |= label_bit(label);
    return true;
}

bool task_read_train(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    if (!place_check_list(place, value))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        const struct task_place element = place_of_element(place, each.at);
        if (!read_label(&element, each.value, &task->trained))
            return false;
    }
    return true;
}

/* ---- what they say together --------------------------------------------------------------- */

/* Nothing is prepared for a shell to work on, and nothing but an answer is scored. */
static bool only_asks(const struct task *task)
{
    return !task->file_count && !task->setup_count && !task->build.dockerfile && strcmp(task->image, "host") == 0 &&
           !task_evaluator_has(task, TASK_EVALUATOR_SCORES_FILES);
}

static const char *kind_of(const struct task *task)
{
    if (task->script)
        return "replay";
    if (!task->tools)
        return only_asks(task) ? "chat" : "bash";
    if (task->tool_count == 0)
        return "chat";
    return task->tool_count == 1 && has_tool(task, "bash") ? "bash" : "tools";
}

/* A script calls what it names, and no more than agent.tools where that is given. */
static bool settle_script(struct task *task, bool has_tools, struct refusal *no)
{
    for (size_t i = 0; i < task->script_count; i++) {
        char field[64];
        const char *const name = task->script[i].tool;
        snprintf(field, sizeof(field), "agent.script[%zu].tool", i);
        if (has_tools && !has_tool(task, name))
            return refuse(no, REFUSAL_BAD_TASK, field, "%s is %s, which is not among agent.tools", field, name);
        if (!has_tools && !add_tools(task, &name, 1, no))
            return false;
    }
    return true;
}

static bool refuse_tools(const struct task *task, const char *wanted, struct refusal *no)
{
    return refuse(no, REFUSAL_BAD_TASK, "agent.tools", "agent.kind %s goes with agent.tools %s", task->agent_kind,
                  wanted);
}

static bool settle_tools(struct task *task, struct refusal *no)
{
    static const char *const standard[] = {"bash", "edit", "submit"};
    const bool has_tools = task->tools != NULL;
    const char *kind = task->agent_kind;
    if (strcmp(kind, "replay") == 0)
        return settle_script(task, has_tools, no);
    if (strcmp(kind, "tools") == 0 && has_tools)
        return task->tool_count > 0 || refuse_tools(task, "of at least one tool", no);
    if (strcmp(kind, "tools") == 0)
        return add_tools(task, standard, sizeof(standard) / sizeof(standard[0]), no);
    if (!task_agent_is_built_in(task))
        return true; /* it calls what it is given, and nothing else */
    if (strcmp(kind, "bash") != 0)
        return task->tool_count == 0 || refuse_tools(task, "[]", no);
    if (has_tools)
        return (task->tool_count == 1 && has_tool(task, "bash")) || refuse_tools(task, "[\"bash\"]", no);
    return add_tools(task, standard, 1, no);
}

static bool makes_calls(const struct task *task) { return text_is_one_of(task->agent_kind, "tools|harness|session"); }

/* How calls are written and answered, which only an agent that makes them may be told;
 * and what only a handler's may. */
static bool settle_form(const struct task *task, struct refusal *no)
{
    const bool is_handlers = !task_agent_is_built_in(task);
    const struct {
        const char *field, *word;
    } rows[] = {{"agent.form", task->agent_form}, {"agent.tool_role", task->agent_tool_role}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].word, "auto") != 0 && !makes_calls(task) && !is_handlers)
            return refuse(no, REFUSAL_BAD_TASK, rows[i].field,
                          "%s goes with agent.kind tools, harness or session, and this task's is %s", rows[i].field,
                          task->agent_kind);
    if (strcmp(task->agent_engine, "auto") != 0 && !is_handlers)
        return refuse(no, REFUSAL_BAD_TASK, "agent.engine",
                      "agent.engine goes with an agent of a handler, and this task's is %s", task->agent_kind);
    return true;
}

/* Which program it is. */
static bool settle_harness(const struct task *task, struct refusal *no)
{
    const bool is_command = strcmp(task->agent_harness, "command") == 0;
    const bool is_harness = strcmp(task->agent_kind, "harness") == 0;
    if (!is_harness && !is_command)
        return refuse(no, REFUSAL_BAD_TASK, "agent.harness",
                      "agent.harness goes with agent.kind harness, and this task's is %s", task->agent_kind);
    if (is_harness && is_command && !task->agent_command)
        return refuse(no, REFUSAL_MISSING_FIELD, "agent.command",
                      "agent.command is missing; agent.harness command, which is the default, requires it");
    if (task->agent_command && (!is_harness || !is_command))
        return refuse(no, REFUSAL_BAD_TASK, "agent.command",
                      "agent.command goes with agent.kind harness and agent.harness command");
    return true;
}

static bool settle_train(struct task *task, struct refusal *no)
{
    if (task->trained && !text_is_one_of(task->agent_kind, "harness|session"))
        return refuse(no, REFUSAL_BAD_TASK, "agent.train",
                      "agent.train goes with agent.kind harness or session, and this task's is %s", task->agent_kind);
    if (!task->trained)
        task->trained = labels_trained();
    return true;
}

/* Whose loop is elsewhere. */
static bool settle_session(const struct task *task, struct refusal *no)
{
    enum { IDLE_S = 300 };
    return task->idle_s == IDLE_S || strcmp(task->agent_kind, TASK_SESSION) == 0 ||
           refuse(no, REFUSAL_BAD_TASK, "agent.idle_s",
                  "agent.idle_s goes with agent.kind session, and this task's is %s", task->agent_kind);
}

bool task_settle_agent(struct task *task, struct refusal *no)
{
    if (!task->agent_kind)
        task->agent_kind = kind_of(task);
    bool is_replay = strcmp(task->agent_kind, "replay") == 0;
    if (is_replay && !task->script)
        return refuse(no, REFUSAL_MISSING_FIELD, "agent.script",
                      "agent.script is missing; give it or agent.recorded: agent.kind replay "
                      "requires it");
    if (!is_replay && task->script)
        return refuse(no, REFUSAL_BAD_TASK, "agent.script",
                      "agent.script goes with agent.kind replay, and this task's is %s", task->agent_kind);
    return settle_form(task, no) && settle_harness(task, no) && settle_train(task, no) && settle_session(task, no) &&
           settle_tools(task, no);
}
