#include "client/gateway/bodies/chat.h"

#include <string.h>

static const struct {
    const char *theirs, *ours;
} roles[] = {
    {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"human", "user"}, {"assistant", "assistant"}};

const char *chat_role(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof(roles) / sizeof(*roles); i++)
        if (strcmp(roles[i].theirs, role) == 0)
            return roles[i].ours;
    return NULL;
}

void chat_ask(json_t *messages, json_t *task)
{
    const json_t *first = json_array_get(messages, 0);
    const char *role = chat_role(first);
    if (json_array_size(messages) == 1 && role && strcmp(role, "user") == 0)
        json_object_set(task, "prompt", json_object_get(first, "content"));
    else
        json_object_set(task, "messages", messages);
}
