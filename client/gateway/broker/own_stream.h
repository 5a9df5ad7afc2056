/*
 * own_stream.h - the name of the stream that a key has of its own behind an API that knows no streams. No two keys have
 * the same, as streams belong to keys: what does not fit is cut, and ends in digits of the whole name's digest.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_OWN_STREAM_H
#define SLUICE_CLIENT_GATEWAY_BROKER_OWN_STREAM_H

enum { OWN_STREAM_SIZE = 65 };

/* PREFIX.KEY; PREFIX alone where the key has no name. */
void own_stream_name(const char *prefix, const char *key, char ret[OWN_STREAM_SIZE]);

#endif
