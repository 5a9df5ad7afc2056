#include "workers/agents/proxy/said.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists that grow ---------------------------------------------------------------------- */

/* Room for one more of `size` bytes in *list; NULL: there is none. */
static void *grow(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    const size_t next = *capacity ? *capacity * 2 : 4;
    void *grown = realloc(list, next * size);
    if (grown)
        *capacity = next;
    return grown;
}

struct said *said_add(struct said_request *request, enum said_role role)
{
    if (request->count == SAID_MESSAGES_MAX)
        return NULL;
    struct said *grown = grow(request->messages, request->count, &request->capacity, sizeof(*grown));
    if (!grown)
        return NULL;
    request->messages = grown;
    struct said *message = &grown[request->count++];
    *message = (struct said){.role = role};
    return message;
}

struct said_call *said_add_call(struct said *message)
{
    if (message->call_count == SAID_CALLS_MAX)
        return NULL;
    struct said_call *grown = grow(message->calls, message->call_count, &message->call_capacity, sizeof(*grown));
    if (!grown)
        return NULL;
    message->calls = grown;
    struct said_call *call = &grown[message->call_count++];
    *call = (struct said_call){0};
    return call;
}

struct said_tool *said_add_tool(struct said_request *request)
{
    if (request->tool_count == SAID_TOOLS_MAX)
        return NULL;
    struct said_tool *grown = grow(request->tools, request->tool_count, &request->tool_capacity, sizeof(*grown));
    if (!grown)
        return NULL;
    request->tools = grown;
    struct said_tool *tool = &grown[request->tool_count++];
    *tool = (struct said_tool){0};
    return tool;
}

/* ---- names of results ----------------------------------------------------------------------- */

/* `names` is an object of {id: name} of all calls so far. */
static bool note_calls(const struct said *message, json_t *names)
{
    for (size_t i = 0; i < message->call_count; i++)
        if (json_object_set_new(names, message->calls[i].id, json_string(message->calls[i].name)) < 0)
            return false;
    return true;
}

static bool name_result(struct said *message, const json_t *names)
{
    const char *name = json_string_value(json_object_get(names, message->call_id));
    if (name && !message->name)
        message->name = strdup(name);
    return !name || message->name;
}

bool said_name_results(struct said_request *request)
{
    json_t *names = json_object();
    bool done = names != NULL;
    for (size_t i = 0; done && i < request->count; i++) {
        struct said *message = &request->messages[i];
        if (message->role == SAID_TOOL)
            done = name_result(message, names);
        else
            done = note_calls(message, names);
    }
    json_decref(names);
    return done;
}

/* ---- their end -------------------------------------------------------------------------------- */

static void finish_message(struct said *message)
{
    for (size_t i = 0; i < message->call_count; i++) {
        free(message->calls[i].id);
        free(message->calls[i].name);
        free(message->calls[i].text);
        json_decref(message->calls[i].arguments);
    }
    free(message->calls);
    free(message->text);
    free(message->thinking);
    free(message->handle);
    free(message->call_id);
    free(message->name);
}

void said_drop_tools(struct said_request *request)
{
    for (size_t i = 0; i < request->tool_count; i++) {
        free(request->tools[i].name);
        free(request->tools[i].doc);
        json_decref(request->tools[i].parameters);
    }
    request->tool_count = 0;
}

void said_request_finish(struct said_request *request)
{
    for (size_t i = 0; i < request->count; i++)
        finish_message(&request->messages[i]);
    said_drop_tools(request);
    free(request->messages);
    free(request->tools);
    free(request->model);
    *request = (struct said_request){0};
}
