#include "client/gateway/gym/row.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/bodies/chat.h"
#include "client/gateway/bodies/task_part.h"
#include "client/gateway/gym/row_judged.h"
#include "client/gateway/json_asked.h"
#include "common/base/cleanup.h"

enum { NAME_MAX_BYTES = 128, SMALL_BYTES = 1024 };

static const struct {
    const char *theirs, *ours;
} samplings[] = {{"temperature", "temperature"}, {"top_p", "top_p"}, {"max_output_tokens", "max_tokens"}};

/* ---- what is asked ------------------------------------------------------------------------------------- */

/* A text, or the texts of a list of parts; NULL: it holds others. */
static json_t *content_of(const json_t *content)
{
    AUTO_BUFFER text = {0};
    if (json_is_string(content))
        return json_incref((json_t *)(uintptr_t)content);
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i), *words = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        if (!json_is_string(words) || !type ||
            (strcmp(type, "text") != 0 && strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0))
            return NULL;
        buffer_append(&text, json_string_value(words), json_string_length(words));
    }
    return json_is_array(content) ? json_stringn(text.data ? (const char *)text.data : "", text.len) : NULL;
}

static bool add_message(json_t *messages, const json_t *message, size_t number, struct fail *fail)
{
    const char *role = chat_role(message), *type = json_string_value(json_object_get(message, "type"));
    if (type && strcmp(type, "message") != 0)
        role = NULL;
    json_t *content = role ? content_of(json_object_get(message, "content")) : NULL;
    if (content)
        return json_array_append_new(messages, json_pack("{s:s,s:o}", "role", role, "content", content)) == 0;
    fail_set(fail, -EINVAL,
             role ? "responses_create_params.input[%zu].content must be text"
                  : "responses_create_params.input[%zu] is no message of the system, a user or the assistant",
             number);
    return false;
}

/* {"prompt": ...} or {"messages": ...} of a text or a list of messages, put into the task. */
static bool ask(const json_t *params, json_t *task, struct fail *fail)
{
    const json_t *input = json_object_get(params, "input"), *instructions = json_object_get(params, "instructions");
    json_t *messages = json_array();
    bool is_whole = true;
    if (json_is_string(instructions))
        json_array_append_new(messages, json_pack("{s:s,s:O}", "role", "system", "content", instructions));
    if (json_is_string(input) && json_string_length(input) > 0)
        json_array_append_new(messages, json_pack("{s:s,s:O}", "role", "user", "content", input));
    else if (json_array_size(input) == 0)
        is_whole = fail_set(fail, -EINVAL, "responses_create_params.input must be a text or a list of messages") == 0;
    for (size_t i = 0; is_whole && i < json_array_size(input); i++)
        is_whole = add_message(messages, json_array_get(input, i), i, fail);
    if (is_whole)
        chat_ask(messages, task);
    json_decref(messages);
    return is_whole;
}

static void sample(const json_t *params, json_t *task)
{
    for (size_t i = 0; i < sizeof(samplings) / sizeof(*samplings); i++) {
        json_t *value = json_object_get(params, samplings[i].theirs);
        if (json_is_number(value))
            json_object_set(task_part(task, "sampling"), samplings[i].ours, value);
    }
}

/* The agent's, where the task names neither an agent nor tools. */
static bool add_tools(const json_t *params, json_t *task, struct fail *fail)
{
    const json_t *tools = json_object_get(params, "tools"), *agent = json_object_get(task, "agent");
    if (json_array_size(tools) == 0 || json_object_get(agent, "tools") || json_object_get(agent, "kind"))
        return true;
    json_t *names = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++) {
        json_t *name = json_object_get(json_array_get(tools, i), "name");
        if (json_is_string(name))
            json_array_append(names, name);
    }
    const bool is_whole = json_array_size(names) == json_array_size(tools);
    if (is_whole)
        json_object_set(task_part(task, "agent"), "tools", names);
    else
        fail_set(fail, -EINVAL, "responses_create_params.tools must be functions with names, of docs/tools.md");
    json_decref(names);
    return is_whole;
}

/* What changes what the model samples, and cannot be done. */
static bool can_be_asked(const json_t *params, struct fail *fail)
{
    const json_t *choice = json_object_get(params, "tool_choice");
    const char *word = json_string_value(choice);
    const char *format = json_string_value(
        json_object_get(json_object_get(json_object_get(params, "text"), "format"), "type"));
    if (json_is_object(choice) || (word && strcmp(word, "required") == 0)) {
        fail_set(fail, -EINVAL, "responses_create_params.tool_choice forces a call, which changes what is sampled");
        return false;
    }
    if (format && strcmp(format, "text") != 0) {
        fail_set(fail, -EINVAL, "responses_create_params.text.format must be text: others change what is sampled");
        return false;
    }
    return true;
}

/* ---- names and what goes along ------------------------------------------------------------------------------- */

static void name_task(const json_t *row, json_t *task)
{
    static const char *const columns[] = {"uuid", "id", "hash_id", "_ng_task_index"};
    char name[NAME_MAX_BYTES + 1] = "row";
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
        const json_t *value = json_object_get(row, columns[i]);
        if (json_is_string(value) && json_string_length(value) > 0)
            snprintf(name, sizeof(name), "%s", json_string_value(value));
        else if (json_is_integer(value))
            snprintf(name, sizeof(name), "row-%lld", (long long)json_integer_value(value));
        else
            continue;
        break;
    }
    for (char *at = name; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '/' || *at == 0x7f)
            *at = '-';
    json_t *text = json_string(name); /* none where it was cut within a letter */
    json_object_set_new(task, "task", text ? text : json_string("row"));
}

/* Its columns that are a number, a word or a short text. */
static void keep_columns(const json_t *row, json_t *task)
{
    json_t *metadata = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)row, name, value)
    {
        const bool is_short = json_is_string(value)
                                  ? json_string_length(value) > 0 && json_string_length(value) <= SMALL_BYTES
                                  : json_is_number(value) || json_is_boolean(value);
        if (is_short && strcmp(name, "question") != 0 && strcmp(name, "expected_answer") != 0)
            json_object_set(metadata, name, value);
    }
    json_object_set_new(task, "metadata", metadata);
}

/* ---- a task of ours -------------------------------------------------------------------------------------------- */

/* Tables of columns put null where another row has a value; a task has no field that wants it. */
static json_t *without_null(const json_t *value)
{
    const char *name;
    json_t *one, *ret = json_is_object(value) ? json_object() : json_is_array(value) ? json_array() : NULL;
    if (!ret)
        return json_incref((json_t *)(uintptr_t)value);
    json_object_foreach((json_t *)(uintptr_t)value, name, one) if (!json_is_null(one))
        json_object_set_new(ret, name, without_null(one));
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_null(json_array_get(value, i)))
            json_array_append_new(ret, without_null(json_array_get(value, i)));
    return ret;
}

/* An object, or the JSON text of one; the caller's. */
static json_t *object_of(const json_t *value)
{
    const char *text = json_string_value(value);
    json_t *read = text && text[strspn(text, " \t\r\n")] == '{'
                       ? json_asked_read(slice_from_str(text), JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    if (json_is_object(read))
        return read;
    json_decref(read);
    return json_is_object(value) ? json_incref((json_t *)(uintptr_t)value) : NULL;
}

static json_t *inline_task(const json_t *row)
{
    static const char *const places[] = {"extra_info", "metadata", "env_extras"};
    json_t *task = object_of(json_object_get(row, "task"));
    for (size_t i = 0; !task && i < sizeof(places) / sizeof(*places); i++) {
        json_t *inner = object_of(json_object_get(row, places[i]));
        task = object_of(json_object_get(inner, "task"));
        json_decref(inner);
    }
    json_t *ret = task ? without_null(task) : NULL;
    json_decref(task);
    return ret;
}

static bool complete(const json_t *row, json_t *task, struct fail *fail)
{
    const json_t *params = json_object_get(row, "responses_create_params"), *input = json_object_get(params, "input");
    const bool has_input = json_array_size(input) > 0 || json_string_length(input) > 0;
    const bool is_asked = json_object_get(task, "prompt") || json_object_get(task, "messages") ||
                          json_object_get(task, "steps");
    if (!json_object_get(task, "task"))
        name_task(row, task);
    return is_asked || !has_input || ask(params, task, fail);
}

json_t *row_task(const json_t *row, struct fail *fail)
{
    const json_t *params = json_object_get(row, "responses_create_params");
    if (!json_is_object(params)) {
        fail_set(fail, -EINVAL, "responses_create_params must be an object");
        return NULL;
    }
    json_t *task = inline_task(row);
    bool is_whole = can_be_asked(params, fail);
    if (task) {
        is_whole = is_whole && complete(row, task, fail);
    } else {
        task = json_object();
        name_task(row, task);
        keep_columns(row, task);
        is_whole = is_whole && ask(params, task, fail) && row_judged(row, task, fail);
    }
    is_whole = is_whole && add_tools(params, task, fail);
    sample(params, task);
    if (is_whole)
        return task;
    json_decref(task);
    return NULL;
}

json_t *row_request_task(const json_t *params, const char *name, struct fail *fail)
{
    json_t *task = json_pack("{s:s}", "task", name);
    if (can_be_asked(params, fail) && ask(params, task, fail) && add_tools(params, task, fail)) {
        sample(params, task);
        return task;
    }
    json_decref(task);
    return NULL;
}

json_t *row_session_task(const json_t *params, struct fail *fail)
{
    if (!can_be_asked(params, fail))
        return NULL;
    json_t *task = json_pack("{s:s,s:{s:s,s:i},s:{s:s}}", "task", "responses", "agent", "kind", "session", "max_turns",
                             1, "eval", "kind", "none");
    sample(params, task);
    return task;
}
