/* chat.h - messages of chat APIs as what a task asks. */
#ifndef SLUICE_CLIENT_GATEWAY_BODIES_CHAT_H
#define SLUICE_CLIENT_GATEWAY_BODIES_CHAT_H

#include <jansson.h>

/* A message's role as a task has it; NULL: none that a task has. */
const char *chat_role(const json_t *message);
/* Messages of a task into it: as its prompt where there is one alone, of the user's. */
void chat_ask(json_t *messages, json_t *task);

#endif
