/* messages.h - the messages of handler.sample and handler.fork: a JSON list of objects of role and content. */
#ifndef SLUICE_WORKERS_HANDLERS_ROLES_MESSAGES_H
#define SLUICE_WORKERS_HANDLERS_ROLES_MESSAGES_H

#include <jansson.h>

#include "schemas/task/task.h"

struct handler_messages {
    json_t *json;
    struct task_message list[TASK_MESSAGES_MAX + 1]; /* borrow from json */
    const char *names[TASK_MESSAGES_MAX + 1];        /* of a tool, where one is said; "" */
    size_t count;
    char *system; /* what messages_add_block made */
};

/* False with a refusal; messages_finish it also then. */
bool messages_read(struct slice json, struct handler_messages *ret, struct refusal *no);
/* Those of the task, which must outlive them. */
void messages_of_task(const struct task *task, struct handler_messages *ret);
/* The end of the system message, which is made where there is none. False when out of memory. */
bool messages_add_block(struct handler_messages *messages, const char *block);
void messages_finish(struct handler_messages *messages);

#endif
