/*
 * jupyter_wire.h - messages of the Jupyter protocol (5.3) on links to a kernel's sockets: framed and
 * signed with HMAC-SHA256. What a kernel sends is the agent's: what is not signed, not whole, too
 * large or too deep is passed over.
 */
#ifndef SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_WIRE_H
#define SLUICE_WORKERS_TOOLS_IPYTHON_JUPYTER_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include "workers/tools/ipython/jupyter_link.h"

enum { JUPYTER_KEY_SIZE = 33 };

struct jupyter_message {
    json_t *header, *parent, *content; /* objects */
};

/* 32 hexadecimal digits by chance: keys, sessions, ids. */
void jupyter_random(char ret[JUPYTER_KEY_SIZE]);

/* Sends a message of `type` and says its id; false when it cannot be sent. Awaits. */
bool jupyter_send(struct jupyter_link *link, const char *key, const char *session, const char *type,
                  const json_t *content, char ret_id[JUPYTER_KEY_SIZE]);
/* 1 with a good message; 0 and -EPIPE as jupyter_link_receive, which takes from *budget. */
int jupyter_receive(struct jupyter_link *link, const char *key, size_t *budget,
                    struct jupyter_message *ret);
void jupyter_message_finish(struct jupyter_message *message);

/* "msg_type" of the header, or "". */
const char *jupyter_type(const struct jupyter_message *message);
/* Whether it answers the message of this id. */
bool jupyter_answers(const struct jupyter_message *message, const char *id);

#endif
