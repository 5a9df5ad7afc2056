/*
 * own_stream.h - the name of the stream that a key has of its own behind an API that knows no streams. A stream is of
 * who names it first: so the name ends in digits that only who has the key's secret can tell.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_OWN_STREAM_H
#define SLUICE_CLIENT_GATEWAY_BROKER_OWN_STREAM_H

#include "client/gateway/broker/identities.h"

enum { OWN_STREAM_SIZE = 65 };

/* PREFIX.KEY-DIGITS, of which PREFIX and KEY are cut; PREFIX alone where nobody is asked for a key. False: out of
 * memory. */
bool own_stream_name(const char *prefix, const struct identity *identity, char ret[OWN_STREAM_SIZE]);

#endif
