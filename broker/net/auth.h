/*
 * auth.h - who may come in, and who a message is from. Without a certificate directory everybody
 * is one admin without a name, and the operator has seen to it that nobody else can connect.
 */
#ifndef SLUICE_BROKER_NET_AUTH_H
#define SLUICE_BROKER_NET_AUTH_H

#include <zmq.h>

#include "broker/core/core.h"
#include "broker/net/zap.h"
#include "common/net/curve.h"

struct auth {
    struct certs *certs; /* NULL: nobody is asked for a key */
    struct zap *zap;
};

/* `dir` may be NULL. Before anything is bound in this context. */
int auth_open(struct auth *auth, void *context, const char *dir, struct fail *fail);
/* After all sockets are closed, before the context ends. */
void auth_close(struct auth *auth);

/* Before bind or connect: from then on only who is known in a role of that domain gets through. */
int auth_arm(const struct auth *auth, void *socket, enum zap_domain domain);

/*
 * Who sent this frame, as the directory has it now; false when its key is no longer known, or no
 * longer for this socket. The caller's name points into ret_name; its route is left as it is.
 */
bool auth_find_caller(const struct auth *auth, zmq_msg_t *frame, enum zap_domain domain, struct caller *ret,
                      char ret_name[KEY_NAME_SIZE]);

#endif
