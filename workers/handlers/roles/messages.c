#include "workers/handlers/roles/messages.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

static bool is_role(const char *role)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    for (size_t i = 0; role && i < sizeof(roles) / sizeof(roles[0]); i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return false;
}

static bool take(const json_t *json, struct handler_messages *ret, struct refusal *no)
{
    const char *role = json_string_value(json_object_get(json, "role"));
    const char *content = json_string_value(json_object_get(json, "content"));
    const char *name = json_string_value(json_object_get(json, "name"));
    if (!is_role(role) || !content || strlen(content) != json_string_length(json_object_get(json, "content")))
        return refuse(no, REFUSAL_WRONG_TYPE, "messages",
                      "messages[%zu] is not an object of role (system, user, assistant or tool) and content, a text",
                      ret->count);
    ret->names[ret->count] = name ? name : "";
    ret->list[ret->count++] = (struct task_message){(char *)(uintptr_t)role, (char *)(uintptr_t)content};
    return true;
}

bool messages_read(struct slice json, struct handler_messages *ret, struct refusal *no)
{
    *ret = (struct handler_messages){
        .json = text_is_shallow(json, TEXT_LEVELS_MAX) ? json_loadb((const char *)json.data, json.len, 0, NULL) : NULL};
    const size_t count = json_array_size(ret->json);
    if (!json_is_array(ret->json) || count == 0 || count > TASK_MESSAGES_MAX)
        return refuse(no, REFUSAL_WRONG_TYPE, "messages", "messages are not a list of 1 to %d objects",
                      TASK_MESSAGES_MAX);
    for (size_t i = 0; i < count; i++)
        if (!take(json_array_get(ret->json, i), ret, no))
            return false;
    return true;
}

void messages_of_task(const struct task *task, struct handler_messages *ret)
{
    *ret = (struct handler_messages){.count = task->message_count};
    for (size_t i = 0; i < task->message_count; i++) {
        ret->list[i] = task->messages[i];
        ret->names[i] = "";
    }
}

bool messages_add_block(struct handler_messages *messages, const char *block)
{
    const bool has_system = messages->count > 0 && strcmp(messages->list[0].role, "system") == 0;
    AUTO_BUFFER words = {0};
    if (has_system)
        buffer_printf(&words, "%s\n\n", messages->list[0].content);
    buffer_append_str(&words, block);
    messages->system = buffer_take_str(&words);
    if (!messages->system)
        return false;
    if (!has_system) {
        memmove(messages->list + 1, messages->list, messages->count * sizeof(*messages->list));
        memmove(messages->names + 1, messages->names, messages->count * sizeof(*messages->names));
        messages->count++;
        messages->names[0] = "";
    }
    messages->list[0] = (struct task_message){(char *)(uintptr_t) "system", messages->system};
    return true;
}

void messages_finish(struct handler_messages *messages)
{
    json_decref(messages->json);
    free(messages->system);
    *messages = (struct handler_messages){.json = NULL};
}
