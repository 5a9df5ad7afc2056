/*
 * history.h - a conversation as messages, kept beside its ids for when they cannot be extended and
 * the engine must render it anew. Text in it is repaired UTF-8.
 */
#ifndef SLUICE_WORKERS_AGENTS_HISTORY_H
#define SLUICE_WORKERS_AGENTS_HISTORY_H

#include "common/slice.h"
#include "schemas/task.h"

struct history {
    struct task_message *messages;
    size_t count, capacity;
    size_t text_from; /* the messages before this one are the task's, as it wrote them */
};

/* Copies; false when out of memory. */
bool history_add(struct history *history, const char *role, struct slice content);
const char *history_reply(const struct history *history); /* the assistant's last, or "" */
void history_finish(struct history *history);

#endif
