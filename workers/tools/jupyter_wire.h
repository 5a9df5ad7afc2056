/*
 * jupyter_wire.h - messages of the Jupyter protocol (5.3) on ZeroMQ sockets: framed, signed with
 * HMAC-SHA256, bounded. What a kernel sends is the agent's: what is not signed, not whole or too
 * large is passed over.
 */
#ifndef SLUICE_WORKERS_TOOLS_JUPYTER_WIRE_H
#define SLUICE_WORKERS_TOOLS_JUPYTER_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/slice.h"

enum { JUPYTER_KEY_SIZE = 33, JUPYTER_MESSAGE_MAX = 16 << 20 };

struct jupyter_message {
    json_t *header, *parent, *content; /* objects */
};

/* 32 hexadecimal digits by chance: keys, sessions, ids. */
void jupyter_random(char ret[JUPYTER_KEY_SIZE]);

/* Sends a message of `type` and says its id. Never blocks; false when it cannot be sent. */
bool jupyter_send(void *socket, const char *key, const char *session, const char *type,
                  const json_t *content, char ret_id[JUPYTER_KEY_SIZE]);
/* 1 with a good message; 0: nothing more is there. Never blocks. */
int jupyter_receive(void *socket, const char *key, struct jupyter_message *ret);
void jupyter_message_finish(struct jupyter_message *message);

/* "msg_type" of the header, or "". */
const char *jupyter_type(const struct jupyter_message *message);
/* Whether it answers the message of this id. */
bool jupyter_answers(const struct jupyter_message *message, const char *id);

#endif
