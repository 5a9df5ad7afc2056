#include "client/gateway/prorl/instance.h"

#include <stdarg.h>
#include <stdio.h>

#include "client/gateway/bodies/chat.h"
#include "client/gateway/bodies/loose_json.h"

enum { NAME_MAX_BYTES = 128 };

bool why_not(char why[WHY_SIZE], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, WHY_SIZE, format, args);
    va_end(args);
    return false;
}

const char *instance_text(const json_t *instance, const char *name)
{
    const char *text = json_string_value(json_object_get(instance, name));
    return text && *text ? text : NULL;
}

const char *instance_word(const json_t *value, char *room, size_t size)
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        snprintf(room, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(room, size, "%.15g", json_real_value(value));
    return json_is_number(value) ? room : NULL;
}

json_t *instance_part(const json_t *instance, const char *name)
{
    json_t *value = json_object_get(instance, name), *part = value ? loose_json_decoded(value) : NULL;
    if (json_is_object(part) || json_is_array(part))
        return part;
    json_decref(part);
    return NULL;
}

/* ---- what is asked ------------------------------------------------------------------------------------ */

/* A text, or parts of which each is one. */
static bool append_content(struct buffer *ret, const json_t *content)
{
    size_t i;
    json_t *part;
    if (json_is_string(content))
        return buffer_append(ret, json_string_value(content), json_string_length(content));
    json_array_foreach((json_t *)(uintptr_t)content, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        if (!json_is_string(text))
            return false;
        buffer_append(ret, json_string_value(text), json_string_length(text));
    }
    return json_array_size(content) > 0;
}

static json_t *message_of(const json_t *given)
{
    const char *role = chat_role(given);
    struct buffer content = {0};
    json_t *message = NULL;
    if (role && append_content(&content, json_object_get(given, "content")))
        message = json_pack("{s:s,s:s%}", "role", role, "content", content.data ? (char *)content.data : "",
                            content.len);
    buffer_finish(&content);
    return message;
}

static bool ask_messages(const json_t *given, json_t *task, char why[WHY_SIZE])
{
    json_t *messages = json_array(), *each;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)given, i, each)
    {
        json_t *message = message_of(each);
        if (!message) {
            json_decref(messages);
            return why_not(why, "prompt[%zu] is no message of a role and a text", i);
        }
        json_array_append_new(messages, message);
    }
    chat_ask(messages, task);
    json_decref(messages);
    return true;
}

bool instance_ask(const json_t *instance, json_t *task, char why[WHY_SIZE])
{
    static const char *const names[] = {"prompt", "problem_statement", "problem", "question"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        json_t *list = instance_part(instance, names[i]);
        if (json_is_array(list) && json_array_size(list) > 0) {
            const bool is_asked = ask_messages(list, task, why);
            json_decref(list);
            return is_asked;
        }
        json_decref(list);
        if (instance_text(instance, names[i])) {
            json_object_set(task, "prompt", json_object_get(instance, names[i]));
            return true;
        }
    }
    return why_not(why, "the instance asks nothing: it has no prompt");
}

json_t *instance_truth(const json_t *instance)
{
    json_t *model = instance_part(instance, "reward_model"), *truth = json_object_get(model, "ground_truth");
    if (!truth)
        truth = json_object_get(instance, "ground_truth");
    if (!truth)
        truth = json_object_get(instance, "answer");
    truth = json_is_null(truth) ? NULL : json_incref(truth);
    json_decref(model);
    return truth;
}

/* ---- its name --------------------------------------------------------------------------------------------- */

static void append_word(struct buffer *ret, const json_t *value, const char *otherwise)
{
    char room[32];
    const char *word = instance_word(value, room, sizeof(room));
    buffer_append_str(ret, word ? word : otherwise);
}

void instance_name(const json_t *instance, const char *source, struct buffer *ret)
{
    char room[32];
    const char *id = instance_word(json_object_get(instance, "instance_id"), room, sizeof(room));
    json_t *extra = instance_part(instance, "extra_info");
    if (id && *id) {
        buffer_append_str(ret, id);
    } else {
        buffer_printf(ret, "%s_", source);
        append_word(ret, json_object_get(extra, "name"), "unknown");
        buffer_append_str(ret, "_");
        append_word(ret, json_object_get(extra, "split"), "unknown");
        buffer_append_str(ret, "_");
        append_word(ret, json_object_get(extra, "index"), "unknown");
    }
    json_decref(extra);
    for (size_t i = 0; i < ret->len; i++)
        if (ret->data[i] <= ' ' || ret->data[i] == '/' || ret->data[i] == 0x7f)
            ret->data[i] = '-';
    while (ret->len > NAME_MAX_BYTES || (ret->len > 0 && ret->len == NAME_MAX_BYTES && ret->data[ret->len - 1] >= 0x80))
        ret->len--;
}
