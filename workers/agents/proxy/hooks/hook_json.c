#include "workers/agents/proxy/hooks/hook_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "workers/agents/formats/tool_format.h"

static const char *const roles[] = {"system", "user", "assistant", "tool"};

/* ---- written ------------------------------------------------------------------------------------------ */

/* False: no memory. A text that is NULL is left out. */
static bool put(json_t *object, const char *name, const char *text)
{
    return !text || json_object_set_new(object, name, json_string(text)) == 0;
}

static json_t *call_json(const char *id, const char *name, const json_t *arguments, const char *text)
{
    json_t *call = json_pack("{s:s*}", "id", id);
    bool done = put(call, "name", name) && put(call, "text", arguments ? NULL : text);
    if (arguments)
        done = done && json_object_set(call, "arguments", (json_t *)(uintptr_t)arguments) == 0;
    if (done)
        return call;
    json_decref(call);
    return NULL;
}

static bool put_calls(json_t *message, const struct said *said)
{
    json_t *calls = json_array();
    bool done = calls != NULL;
    for (size_t i = 0; i < said->call_count && done; i++)
        done = json_array_append_new(calls, call_json(said->calls[i].id, said->calls[i].name, said->calls[i].arguments,
                                                      said->calls[i].text)) == 0;
    if (done && said->call_count > 0)
        return json_object_set_new(message, "calls", calls) == 0;
    json_decref(calls);
    return done;
}

static json_t *message_json(const struct said *said)
{
    json_t *message = json_pack("{s:s, s:s}", "role", roles[said->role], "content", said->text);
    bool done = message && put(message, "thinking", said->thinking) && put_calls(message, said) &&
                put(message, "call_id", said->call_id) && put(message, "name", said->name);
    if (done && said->is_error)
        done = json_object_set_new(message, "is_error", json_true()) == 0;
    if (done)
        return message;
    json_decref(message);
    return NULL;
}

json_t *hook_json_messages(const struct said *messages, size_t count)
{
    json_t *list = json_array();
    bool done = list != NULL;
    for (size_t i = 0; i < count && done; i++)
        done = json_array_append_new(list, message_json(&messages[i])) == 0;
    if (done)
        return list;
    json_decref(list);
    return NULL;
}

json_t *hook_json_tools(const struct said_tool *tools, size_t count)
{
    json_t *list = json_array();
    bool done = list != NULL;
    for (size_t i = 0; i < count && done; i++)
        done = json_array_append_new(list, json_pack("{s:s, s:s, s:O}", "name", tools[i].name, "doc", tools[i].doc,
                                                     "parameters", tools[i].parameters)) == 0;
    if (done)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *told_json(const char *text, const char *thinking)
{
    json_t *json = json_pack("{s:s, s:[]}", "text", text, "calls");
    if (json && put(json, "thinking", thinking && *thinking ? thinking : NULL))
        return json;
    json_decref(json);
    return NULL;
}

/* NULL: no memory. */
static json_t *add_call(json_t *told, const char *name, const json_t *arguments)
{
    if (told && json_array_append_new(json_object_get(told, "calls"), call_json(NULL, name, arguments, NULL)) == 0)
        return told;
    json_decref(told);
    return NULL;
}

json_t *hook_json_reply(const struct reply *reply)
{
    json_t *told = told_json(reply->text, reply->thinking);
    for (size_t i = 0; i < reply->call_count; i++)
        told = add_call(told, reply->calls[i].name, reply->calls[i].arguments);
    return told;
}

json_t *hook_json_told(const struct said *message)
{
    json_t *told = told_json(message->text, message->thinking);
    for (size_t i = 0; i < message->call_count; i++)
        told = add_call(told, message->calls[i].name, message->calls[i].arguments);
    return told;
}

/* ---- read ------------------------------------------------------------------------------------------------ */

json_t *hook_json_parse(struct slice text)
{
    return text_is_shallow(text, SAID_DEPTH_MAX)
               ? json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL)
               : NULL;
}

/* A text, or none: *ret stays NULL, where it may be left out. False: it is something else, or there is no memory. */
static bool take_text(const json_t *value, bool is_wanted, char **ret)
{
    if (!value || json_is_null(value))
        return !is_wanted;
    const char *text = json_string_value(value);
    *ret = text && strlen(text) == json_string_length(value) ? strdup(text) : NULL;
    return *ret != NULL;
}

static bool take(const json_t *object, const char *name, bool is_wanted, char **ret)
{
    return take_text(json_object_get(object, name), is_wanted, ret);
}

static bool take_call(const json_t *json, struct said *message)
{
    struct said_call *call = json_is_object(json) ? said_add_call(message) : NULL;
    json_t *arguments = json_object_get(json, "arguments");
    if (!call || !take(json, "name", true, &call->name) || !take(json, "id", false, &call->id) ||
        !take(json, "text", false, &call->text) || (!call->id && !(call->id = strdup(""))))
        return false;
    if (!arguments)
        return call->text != NULL;
    return json_is_object(arguments) && (call->arguments = json_deep_copy(arguments));
}

static bool take_calls(const json_t *list, struct said *message)
{
    const json_t *call;
    size_t i;
    bool done = !list || json_is_array(list);
    json_array_foreach(list, i, call) done = done && take_call(call, message);
    return done;
}

static bool take_role(const char *word, enum said_role *ret)
{
    for (size_t i = 0; word && i < sizeof(roles) / sizeof(*roles); i++)
        if (strcmp(word, roles[i]) == 0) {
            *ret = (enum said_role)i;
            return true;
        }
    return false;
}

static bool take_texts(const json_t *json, struct said *message)
{
    return take(json, "content", true, &message->text) && take(json, "thinking", false, &message->thinking) &&
           take(json, "call_id", false, &message->call_id) && take(json, "name", false, &message->name);
}

static bool take_message(const json_t *json, struct said_request *request)
{
    enum said_role role;
    if (!take_role(json_string_value(json_object_get(json, "role")), &role))
        return false;
    struct said *message = said_add(request, role);
    if (!message || !take_texts(json, message) || !take_calls(json_object_get(json, "calls"), message))
        return false;
    message->is_error = json_is_true(json_object_get(json, "is_error"));
    if (role == SAID_TOOL && !message->call_id)
        message->call_id = strdup("");
    return role != SAID_TOOL || message->call_id;
}

int hook_json_read_messages(const json_t *list, struct said_request *ret, struct fail *fail)
{
    const json_t *one;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > SAID_MESSAGES_MAX)
        return fail_set(fail, -EINVAL, "messages are not a list of 1 to %d", SAID_MESSAGES_MAX);
    json_array_foreach(list, i, one) if (!take_message(one, ret)) return fail_set(
        fail, -EINVAL,
        "messages[%zu] is none: an object of role (system, user, assistant or tool) and content, texts both, and "
        "calls, a "
        "list of objects of name and arguments",
        i);
    return 0;
}

/* What the answer does not give stays as it is. */
static const json_t *given(const json_t *reply, const json_t *now, const char *name)
{
    const json_t *value = json_object_get(reply, name);
    return value && !json_is_null(value) ? value : json_object_get(now, name);
}

static bool take_reply(const json_t *reply, const json_t *now, struct said *message)
{
    const json_t *calls = given(reply, now, "calls");
    bool done = json_is_object(reply) && take_text(given(reply, now, "text"), true, &message->text) &&
                take_text(given(reply, now, "thinking"), false, &message->thinking) &&
                json_array_size(calls) <= FORM_CALLS_MAX && take_calls(calls, message);
    for (size_t n = 0; n < message->call_count; n++)
        done = done && message->calls[n].arguments;
    return done;
}

int hook_json_read_reply(const json_t *reply, const json_t *now, struct said_request *ret, struct fail *fail)
{
    struct said *message = said_add(ret, SAID_ASSISTANT);
    if (!message)
        return fail_memory(fail);
    if (!take_reply(reply, now, message))
        return fail_set(fail, -EINVAL,
                        "the reply is none: an object of text, thinking and calls, a list of at most %d objects of "
                        "name and arguments",
                        FORM_CALLS_MAX);
    return 0;
}
