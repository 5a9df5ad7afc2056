#include "workers/agents/proxy/dialects/body_messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"

/* ---- messages --------------------------------------------------------------------------------- */

struct said *body_message(struct body *body)
{
    return body->is_open ? &body->request->messages[body->request->count - 1] : NULL;
}

bool body_end(struct body *body)
{
    struct said *message = body_message(body);
    if (!message)
        return true;
    const bool has_thought = body->thinking.len > 0;
    body->is_open = false;
    message->text = buffer_take_str(&body->text);
    message->thinking = has_thought ? buffer_take_str(&body->thinking) : NULL;
    return (message->text && (message->thinking || !has_thought)) || body_out_of_memory(body);
}

bool body_begin(struct body *body, const struct body_place *place, enum said_role role)
{
    if (!body_end(body))
        return false;
    if (body->request->count == SAID_MESSAGES_MAX)
        return body_refuse(body, place, "there are more than %d messages", SAID_MESSAGES_MAX);
    body->step = 0;
    body->is_open = said_add(body->request, role) != NULL;
    return body->is_open || body_out_of_memory(body);
}

static bool run(struct body *body, const struct body_place *root,
                bool (*read)(struct body *body, const struct body_place *root))
{
    if (!json_is_object(root->value))
        return body_refuse(body, root, "the body is no JSON object");
    if (!body_text(body, root, "model", &body->request->model) || !read(body, root) || !body_end(body))
        return false;
    if (body->request->count == 0)
        return body_refuse(body, root, "there is no message");
    return said_name_results(body->request) || body_out_of_memory(body);
}

int body_run(const json_t *json, bool (*read)(struct body *body, const struct body_place *root),
             struct said_request *ret, struct fail *fail)
{
    const struct body_place root = {.value = json};
    struct body body = {.request = ret};
    run(&body, &root, read);
    buffer_finish(&body.text);
    buffer_finish(&body.thinking);
    return body.fail.code == 0 ? 0 : fail_set(fail, body.fail.code, "%s", body.fail.text);
}

bool body_role(struct body *body, const struct body_place *message, const struct body_role *roles, enum said_role *ret)
{
    const struct body_place role = body_in(message, "role");
    const char *word = NULL;
    if (!body_needed_word(body, message, "role", &word))
        return false;
    for (; roles->word; roles++)
        if (strcmp(roles->word, word) == 0) {
            *ret = roles->role;
            return true;
        }
    return body_refuse_word(body, &role);
}

/* ---- texts ------------------------------------------------------------------------------------ */

static bool put(struct body *body, struct buffer *to, const char *between, struct slice text)
{
    if (to->len > 0 && text.len > 0)
        buffer_append_str(to, between);
    utf8_append_repaired(to, text);
    return !to->failed || body_out_of_memory(body);
}

static bool add(struct body *body, struct buffer *to, const char *between, const struct body_place *in, const char *key)
{
    const struct body_place place = body_in(in, key);
    if (!place.value)
        return true;
    if (!json_is_string(place.value))
        return body_refuse_kind(body, &place, "a string");
    return put(body, to, between, slice_of(json_string_value(place.value), json_string_length(place.value)));
}

bool body_add_words(struct body *body, const char *words)
{
    return put(body, &body->text, "\n", slice_from_str(words));
}

bool body_add_text(struct body *body, const struct body_place *in, const char *key)
{
    return add(body, &body->text, "\n", in, key);
}

bool body_append_text(struct body *body, const struct body_place *in, const char *key)
{
    return add(body, &body->text, "", in, key);
}

bool body_add_thinking(struct body *body, const struct body_place *in, const char *key)
{
    return add(body, &body->thinking, "\n", in, key);
}

bool body_append_thinking(struct body *body, const struct body_place *in, const char *key)
{
    return add(body, &body->thinking, "", in, key);
}

static bool add_part(struct body *body, const struct body_place *part, const char *types)
{
    const struct body_place type = body_in(part, "type");
    if (!body_one_of(body, &type, types))
        return false;
    const char *key = body_says(part, "type", "refusal") ? "refusal" : "text";
    const struct body_place text = body_in(part, key);
    return text.value ? body_add_text(body, part, key) : body_refuse_kind(body, &text, "a string");
}

bool body_add_content(struct body *body, const struct body_place *content, const char *types)
{
    if (!content->value)
        return true;
    if (json_is_string(content->value))
        return body_add_text(body, content->in, content->key);
    if (!json_is_array(content->value))
        return body_refuse_kind(body, content, "a string or a list of parts");
    return body_each_with(body, content, add_part, types);
}

bool body_add_handle(struct body *body, const char *handle, const char *prefix)
{
    struct said *message = body_message(body);
    if (!handle || message->handle)
        return true;
    const size_t len = strlen(prefix);
    message->handle = strdup(strncmp(handle, prefix, len) == 0 ? handle + len : handle);
    if (message->handle)
        text_repair(message->handle);
    return message->handle || body_out_of_memory(body);
}

/* ---- calls ------------------------------------------------------------------------------------ */

struct said_call *body_add_call(struct body *body, const struct body_place *place)
{
    struct said *message = body_message(body);
    if (message->call_count == SAID_CALLS_MAX) {
        body_refuse(body, place, "a turn has more than %d calls", SAID_CALLS_MAX);
        return NULL;
    }
    struct said_call *call = said_add_call(message);
    if (!call)
        body_out_of_memory(body);
    return call;
}

bool body_arguments_text(struct body *body, const struct body_place *in, const char *key, struct said_call *call)
{
    const struct body_place place = body_in(in, key);
    if (!json_is_string(place.value))
        return body_refuse_kind(body, &place, "a string of JSON");
    const struct slice text = slice_of(json_string_value(place.value), json_string_length(place.value));
    if (text_trim(text).len == 0)
        call->arguments = json_object(); /* so some say that there are none */
    else if (text_is_shallow(text, SAID_DEPTH_MAX))
        call->arguments = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (json_is_object(call->arguments))
        return true;
    json_decref(call->arguments);
    call->arguments = NULL;
    call->text = body_copy(place.value);
    return call->text || body_out_of_memory(body);
}

bool body_arguments(struct body *body, const struct body_place *in, const char *key, struct said_call *call)
{
    const struct body_place place = body_in(in, key);
    if (!body_object(body, &place))
        return false;
    call->arguments = place.value ? json_incref((json_t *)(uintptr_t)place.value) : json_object();
    return call->arguments || body_out_of_memory(body);
}

/* ---- tools ------------------------------------------------------------------------------------ */

static bool name_is_new(struct body *body, const struct body_place *place, const char *name)
{
    const struct body_place said = body_in(place, "name");
    for (size_t i = 0; i + 1 < body->request->tool_count; i++)
        if (strcmp(body->request->tools[i].name, name) == 0)
            return body_refuse(body, &said, "there is another tool of this name");
    return true;
}

bool body_put_space(struct body *body, const char *space, char **name)
{
    if (!space)
        return true;
    struct buffer whole = {0};
    utf8_append_repaired(&whole, slice_from_str(space));
    buffer_printf(&whole, ".%s", *name);
    free(*name);
    *name = buffer_take_str(&whole);
    return *name || body_out_of_memory(body);
}

static bool take_schema(struct body *body, const struct body_place *place, struct said_tool *tool)
{
    if (!body_object(body, place))
        return false;
    tool->parameters = place->value ? json_incref((json_t *)(uintptr_t)place->value)
                                    : json_pack("{s:s, s:{}}", "type", "object", "properties");
    return tool->parameters || body_out_of_memory(body);
}

bool body_add_tool(struct body *body, const struct body_place *place, const char *space, const char *schema)
{
    const struct body_place parameters = body_in(place, schema);
    if (body->request->tool_count == SAID_TOOLS_MAX)
        return body_refuse(body, place, "there are more than %d tools", SAID_TOOLS_MAX);
    struct said_tool *tool = said_add_tool(body->request);
    if (!tool)
        return body_out_of_memory(body);
    if (!body_name(body, place, "name", &tool->name) || !body_put_space(body, space, &tool->name) ||
        !name_is_new(body, place, tool->name) || !body_text(body, place, "description", &tool->doc))
        return false;
    if (!tool->doc)
        tool->doc = strdup("");
    return tool->doc ? take_schema(body, &parameters, tool) : body_out_of_memory(body);
}

bool body_tool_choice(struct body *body, const struct body_place *choice, const char *free, const char *none)
{
    if (!choice->value || body->request->tool_count == 0)
        return true;
    const char *word = json_string_value(choice->value);
    if (word && text_is_one_of(word, free))
        return true;
    if (!word || !text_is_one_of(word, none))
        return body_refuse(body, choice, "a choice that is forced on the model is not supported");
    said_drop_tools(body->request);
    return true;
}
