/*
 * trust.h - the certificate directory: which public key is whose, and in which role.
 *
 *     DIR/broker.key              the broker's own, with its secret
 *     DIR/trusted/trainer/NAME.pub
 *     DIR/trusted/worker/NAME.pub
 *     DIR/trusted/admin/NAME.pub
 *
 * A file there is what makes somebody known; removing it is what makes them unknown. The directories
 * are looked at again a moment after they changed, and each file once a second (with many of them, less often): one that is
 * written in place counts as it is now. A file that says another role or name than its
 * place does, or whose key stands elsewhere too, counts for nothing and is logged. A directory that
 * cannot be read, for another reason than that it is not there, leaves its role as it was.
 *
 * All calls may be made from any thread.
 */
#ifndef SLUICE_BROKER_NET_TRUST_H
#define SLUICE_BROKER_NET_TRUST_H

#include <stdint.h>

#include "common/net/keys.h"

struct trust;

enum { TRUST_LOOK_MS = 200, TRUSTED_MAX = 65536 };

struct trusted {
    enum key_role role;
    char name[KEY_NAME_SIZE];
};

/* Reads DIR/broker.key, whose role must be broker, and the directories. */
int trust_open(struct trust **ret, const char *dir, struct fail *fail);
void trust_close(struct trust **trust);

const struct key *trust_own_key(const struct trust *trust);

/* False: nobody knows this key. */
bool trust_find(struct trust *trust, const char *public_text, struct trusted *ret);

/* Grows whenever somebody who was known is no longer. */
uint64_t trust_losses(struct trust *trust);

#endif
