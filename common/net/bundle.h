/*
 * bundle.h - several messages as one, so that what a cycle has for a peer costs one message of ZeroMQ: a byte that
 * begins no message of ours (msgpack leaves it unused), then each message behind its length, 4 bytes, the least first.
 *
 * What somebody waits for is sent no later than without it: who makes one adds what there is to say before it waits,
 * and sends it then. Large messages go alone, as they cost their bytes more than their number.
 */
#ifndef SLUICE_COMMON_NET_BUNDLE_H
#define SLUICE_COMMON_NET_BUNDLE_H

#include "common/base/buffer.h"

enum {
    BUNDLE_MARK = 0xc1,
    BUNDLED_MAX = 4096,       /* bytes of a message: a longer one goes alone */
    BUNDLE_BYTES_MAX = 65536, /* so long one is made ... */
    BUNDLE_COUNT_MAX = 4096   /* ... and of so many messages read: no message of 12 bytes says anything */
};

/* Adds a message, to an empty buffer as the first. False when out of memory. */
bool bundle_add(struct buffer *bundle, struct slice message);

/* What to send of a buffer that something was added to: a message that is the only one goes as it is. */
struct slice bundle_peek(const struct buffer *bundle);

bool is_bundle(struct slice bytes);
/* Start with *at = 0. 1: a message, 0: no more, -1: what follows is cut short. */
int bundle_next(struct slice bundle, size_t *at, struct slice *ret);

#endif
