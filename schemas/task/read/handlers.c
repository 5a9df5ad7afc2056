/* What a task needs of handlers, and those that come with it. */
#include <string.h>

#include "common/base/text.h"
#include "schemas/task/evaluators.h"
#include "schemas/task/read/task_read.h"

static const char *const role_wires[HANDLER_ROLE_COUNT] = {
    [HANDLER_AGENT] = "agent", [HANDLER_TOOL] = "tool", [HANDLER_EVALUATOR] = "evaluator", [HANDLER_HOOK] = "hook"};

const char *handler_role_wire(enum handler_role role) { return role_wires[role]; }

bool handler_role_parse(struct slice wire, enum handler_role *ret)
{
    for (unsigned i = 0; i < HANDLER_ROLE_COUNT; i++)
        if (slice_is(wire, role_wires[i])) {
            *ret = (enum handler_role)i;
            return true;
        }
    return false;
}

static bool is_letter(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool handler_name_is_valid(struct slice name)
{
    if (name.len == 0 || name.len > HANDLER_NAME_MAX || !is_letter(name.data[0]))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        const uint8_t c = name.data[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '-')
            return false;
    }
    return true;
}

/* ---- what is built in ------------------------------------------------------------------------ */

bool task_agent_is_built_in(const struct task *task)
{
    return text_is_one_of(task->agent_kind, task_row_find("agent", "kind")->words);
}

bool task_eval_reads_record(const struct task *task)
{
    return strcmp(task->kind, "noop") != 0 &&
           (task_needs_teacher(task) || task_evaluator_has(task, TASK_EVALUATOR_READS_RECORD) ||
            task_judge_reads(task, "conversation") || !task_evaluator_is_built_in(task));
}

struct slice handler_built_in(enum handler_role role, size_t n)
{
    if (role == HANDLER_TOOL)
        return slice_from_str(task_tool_built_in(n));
    const bool is_agent = role == HANDLER_AGENT;
    const char *at = task_row_find(is_agent ? "agent" : "eval", "kind")->words;
    for (; at && n; n--)
        at = (at = strchr(at, '|')) ? at + 1 : NULL;
    return slice_of(at, at ? strcspn(at, "|") : 0);
}

const struct task_handler *task_handler_find(const struct task *task, const char *name)
{
    for (size_t i = 0; i < task->handler_count; i++)
        if (strcmp(task->handlers[i].name, name) == 0)
            return &task->handlers[i];
    return NULL;
}

/* ---- what is not ------------------------------------------------------------------------------- */

static void add_need(const struct task *task, enum handler_role role, const char *name, struct task_need *ret,
                     size_t *count)
{
    if (!task_handler_find(task, name))
        ret[(*count)++] = (struct task_need){role, name};
}

size_t task_needs(const struct task *task, enum stage stage, struct task_need ret[TASK_NEEDS_MAX])
{
    size_t count = 0;
    if (strcmp(task->kind, "noop") == 0)
        return 0;
    const enum stage evaluates = task_is_evaluated_by_run(task) ? STAGE_RUN : STAGE_EVAL;
    if (stage == evaluates && !task_evaluator_is_built_in(task))
        add_need(task, HANDLER_EVALUATOR, task->eval_kind, ret, &count);
    if (stage != STAGE_RUN)
        return count;
    if (strcmp(task->agent_kind, TASK_SESSION) == 0)
        ret[count++] = (struct task_need){HANDLER_AGENT, TASK_SESSION};
    if (!task_agent_is_built_in(task))
        add_need(task, HANDLER_AGENT, task->agent_kind, ret, &count);
    for (size_t i = 0; i < task->tool_count; i++)
        if (!task_tool_is_built_in(task->tools[i]))
            add_need(task, HANDLER_TOOL, task->tools[i], ret, &count);
    return count;
}

static bool evaluator_is_shown(const struct task *task)
{
    return !task_evaluator_is_built_in(task) || task_evaluator_has(task, TASK_EVALUATOR_SHOWS_TASK);
}

/* What goes between a harness or a session and its model may be a handler's hook, of which the task says nothing. */
static bool agent_is_shown(const struct task *task)
{
    bool is_shown = !task_agent_is_built_in(task) || text_is_one_of(task->agent_kind, "harness|" TASK_SESSION);
    for (size_t i = 0; i < task->tool_count; i++)
        is_shown |= !task_tool_is_built_in(task->tools[i]);
    return is_shown;
}

bool task_is_shown(const struct task *task, enum stage stage)
{
    if (strcmp(task->kind, "noop") == 0 || stage == STAGE_INIT)
        return false;
    const enum stage evaluates = task_is_evaluated_by_run(task) ? STAGE_RUN : STAGE_EVAL;
    return (stage == STAGE_RUN && agent_is_shown(task)) || (stage == evaluates && evaluator_is_shown(task));
}

/* ---- those that come with it --------------------------------------------------------------------- */

static bool read_handler(const struct task_place *place, struct task_value value, void *into)
{
    const struct task_handler *handler = into;
    if (!task_read_object(place, "handlers[]", value, into))
        return false;
    return !task_handler_find(place->base, handler->name) ||
           refuse(place->no, REFUSAL_BAD_TASK, place->shown, "%s: the name %s is given twice", place->shown,
                  handler->name);
}

bool task_read_handlers(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return place_read_list(place, value, sizeof(*task->handlers), read_handler, &task->handlers, &task->handler_count);
}
