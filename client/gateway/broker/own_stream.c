#include "client/gateway/broker/own_stream.h"

#include <stdio.h>
#include <string.h>

#include "common/digest/digest.h"

void own_stream_name(const char *prefix, const char *key, char ret[OWN_STREAM_SIZE])
{
    char digest[DIGEST_SIZE] = "sha256:";
    const int len = snprintf(ret, OWN_STREAM_SIZE, *key ? "%s.%s" : "%.64s", prefix, key);
    if (*key && len >= OWN_STREAM_SIZE) {
        digest_of(slice_from_str(key), digest);
        snprintf(ret, OWN_STREAM_SIZE, "%.24s.%.18s-%.20s", prefix, key, digest + strlen("sha256:"));
    }
}
