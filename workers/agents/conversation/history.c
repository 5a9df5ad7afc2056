#include "workers/agents/conversation/history.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"

static bool has_room(struct history *history)
{
    if (history->count < history->capacity)
        return true;
    const size_t capacity = history->capacity ? history->capacity * 2 : 16;
    struct task_message *grown = reallocarray(history->messages, capacity, sizeof(*grown));
    if (!grown)
        return false;
    history->messages = grown;
    history->capacity = capacity;
    return true;
}

bool history_add(struct history *history, const char *role, struct slice content)
{
    struct buffer text = {0};
    if (!has_room(history))
        return false;
    utf8_append_repaired(&text, content);
    struct task_message message = {strdup(role), buffer_take_str(&text)};
    if (!message.role || !message.content) {
        free(message.role);
        free(message.content);
        return false;
    }
    history->messages[history->count++] = message;
    return true;
}

bool history_replies(const struct history *history, const char *role, const char ***ret, size_t *ret_count)
{
    const size_t from = history->text_from < history->count ? history->text_from : history->count;
    const char **replies = calloc(history->count - from + 1, sizeof(*replies));
    size_t count = 0;
    for (size_t i = history->count; replies && i > from; i--) {
        const struct task_message *message = &history->messages[i - 1];
        if (strcmp(message->role, role) == 0)
            break;
        if (strcmp(message->role, "assistant") == 0)
            replies[count++] = message->content;
    }
    *ret = replies;
    *ret_count = count;
    return replies != NULL;
}

void history_finish(struct history *history)
{
    while (history->count > 0) {
        free(history->messages[--history->count].role);
        free(history->messages[history->count].content);
    }
    free(history->messages);
    *history = (struct history){0};
}
