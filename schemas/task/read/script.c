/* What a replay calls: agent.script, or the calls of agent.recorded, a trajectory's messages. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "schemas/task/read/task_read.h"

enum { ARGUMENTS_DEPTH_MAX = 32 };

/* ---- agent.script ---------------------------------------------------------------------------- */

static bool refuse_second(const struct task_place *place, const struct task *task)
{
    return !task->script || refuse(place->no, REFUSAL_AMBIGUOUS, place->shown,
                                   "only one of agent.script and agent.recorded may be given");
}

static bool read_call(const struct task_place *place, struct task_value value, void *into)
{
    task_read_defaults("agent.script[]", into);
    return task_read_object(place, "agent.script[]", value, into);
}

bool task_read_script(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    return refuse_second(place, task) &&
           place_read_list(place, value, sizeof(*task->script), read_call, &task->script, &task->script_count);
}

static bool is_shallow(const json_t *value, int levels)
{
    const char *key;
    json_t *inner;
    size_t i;
    if (levels == 0)
        return !json_is_object(value) && !json_is_array(value);
    json_object_foreach((json_t *)(uintptr_t)value, key, inner) if (!is_shallow(inner, levels - 1)) return false;
    json_array_foreach(value, i, inner) if (!is_shallow(inner, levels - 1)) return false;
    return true;
}

static bool set_arguments(const struct task_place *place, const char **member, const json_t *json)
{
    if (!is_shallow(json, ARGUMENTS_DEPTH_MAX))
        return refuse(place->no, REFUSAL_TOO_LARGE, place->shown, "%s has more than %d levels", place->shown,
                      ARGUMENTS_DEPTH_MAX);
    return place_set_json(place, member, json);
}

bool task_read_arguments(const struct task_place *place, struct task_value value)
{
    if (!task_value_is(value, JSON_DOC_OBJECT))
        return place_wrong_type(place, "an object");
    json_t *json = task_value_load(value);
    const bool good = json ? set_arguments(place, place_member(place), json) : place_out_of_memory(place);
    json_decref(json);
    return good;
}

/* ---- agent.recorded -------------------------------------------------------------------------- */

/* What follows the name: an object as JSON, or the command of an agent with a shell alone. */
static json_t *arguments_of(const char *name, const char *rest)
{
    json_error_t error;
    json_t *json = json_loads(rest, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return strcmp(name, "bash") == 0 ? json_pack("{s:s}", "command", rest) : NULL;
}

/* "NAME: ARGUMENTS", as a trajectory has them. */
static bool set_call(const struct task_place *place, const char *said, struct task_call *call)
{
    static const struct task_row tool_row = {.type = TASK_HANDLER_NAME, .min = 1, .max = HANDLER_NAME_MAX};
    struct task_place tool = *place;
    const char *colon = strstr(said, ": ");
    const char *name = arena_text(place->arena, slice_of(said, colon ? (size_t)(colon - said) : strlen(said)));
    tool.row = &tool_row;
    if (!name)
        return place_out_of_memory(place);
    if (!place_set_handler_name(&tool, &call->tool, name))
        return false;
    json_t *given = arguments_of(name, colon ? colon + 2 : "");
    const bool good = given
                          ? set_arguments(place, &call->arguments, given)
                          : refuse(place->no, REFUSAL_BAD_TASK, place->shown,
                                   "%s must be a tool's name, \": \" and its arguments as a JSON object", place->shown);
    json_decref(given);
    return good;
}

/* A message that is a call becomes one of the script; the others are passed over. */
static bool take_message(const struct task_place *place, const struct task_recorded *message)
{
    struct task *task = place->base;
    struct task_place element = *place;
    if (!message->tool)
        return true;
    if (task->script_count == TASK_SCRIPT_MAX)
        return refuse(place->no, REFUSAL_TOO_LARGE, place->shown, "more than %d calls", TASK_SCRIPT_MAX);
    struct task_call *call = &task->script[task->script_count++];
    call->result = message->content;
    call->status = message->exit_status;
    snprintf(element.shown, sizeof(element.shown), "%.100s.tool", place->shown);
    return set_call(&element, message->tool, call);
}

bool task_read_recorded(const struct task_place *place, struct task_value value)
{
    struct task *task = place->base;
    if (!refuse_second(place, task) || !place_check_list(place, value) ||
        !place_make_list(place, task_value_count(value), sizeof(*task->script), &task->script))
        return false;
    for (struct task_values each = task_values_of(value); task_values_next(&each);) {
        struct task_place element = place_of_element(place, each.at);
        struct task_recorded message = {0};
        task_read_defaults("agent.recorded[]", &message);
        if (!task_read_object(&element, "agent.recorded[]", each.value, &message) || !take_message(&element, &message))
            return false;
    }
    return task->script_count > 0 ||
           refuse(place->no, REFUSAL_BAD_TASK, place->shown, "none of %s is a call", place->shown);
}
