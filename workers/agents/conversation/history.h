/*
 * history.h - a conversation as messages, kept beside its ids for when they cannot be extended and
 * the engine must render it anew. Text in it is repaired UTF-8.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_HISTORY_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_HISTORY_H

#include "common/base/slice.h"
#include "schemas/task/task.h"

struct history {
    struct task_message *messages;
    size_t count, capacity;
    size_t text_from; /* the messages before this one are the task's, as it wrote them */
};

/* Copies; false when out of memory. */
bool history_add(struct history *history, const char *role, struct slice content);
/*
 * The replies since one was last answered in this role, the last first; of the task's messages none.
 * A template may change what it kept so far where another role answers. *ret is the caller's to
 * free, the texts are not; false when out of memory.
 */
bool history_replies(const struct history *history, const char *role, const char ***ret, size_t *ret_count);
void history_finish(struct history *history);

#endif
