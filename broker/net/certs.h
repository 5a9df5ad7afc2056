/*
 * certs.h - the certificate directory: which public key is whose, and in which role.
 *
 *     DIR/broker.key              the broker's own, with its secret
 *     DIR/trusted/trainer/NAME.pub
 *     DIR/trusted/worker/NAME.pub
 *     DIR/trusted/admin/NAME.pub
 *
 * A file there is what makes somebody known; removing it is what makes them unknown. The directories
 * are looked at again a moment after they changed, and each file once a second (with many of them, less often): one
 * that is written in place counts as it is now. A file that says another role or name than its place does, or whose key
 * stands elsewhere too, counts for nothing and is logged. A directory that cannot be read, for another reason than that
 * it is not there, leaves its role as it was.
 *
 * All calls may be made from any thread.
 */
#ifndef SLUICE_BROKER_NET_CERTS_H
#define SLUICE_BROKER_NET_CERTS_H

#include <stdint.h>

#include "common/net/keys.h"

struct certs;

enum { CERTS_LOOK_MS = 200, CERTS_MAX = 65536 };

struct cert {
    enum key_role role;
    char name[KEY_NAME_SIZE];
};

/* Reads DIR/broker.key, whose role must be broker, and the directories. */
int certs_open(struct certs **ret, const char *dir, struct fail *fail);
void certs_close(struct certs **certs);

const struct key *certs_own_key(const struct certs *certs);

/* False: nobody knows this key. */
bool certs_find(struct certs *certs, const char *public_text, struct cert *ret);

/* Grows whenever somebody who was known is no longer. */
uint64_t certs_removed(struct certs *certs);

#endif
