#include "client/gateway/broker/own_stream.h"

#include <stdio.h>

#include "common/digest/digest.h"

bool own_stream_name(const char *prefix, const struct identity *identity, char ret[OWN_STREAM_SIZE])
{
    const char *mark = caller_mark(identity->caller);
    char text[DIGEST_SIZE];
    struct digest *digest = *mark ? digest_begin() : NULL;
    if (!*mark)
        return snprintf(ret, OWN_STREAM_SIZE, "%s", prefix) < OWN_STREAM_SIZE;
    if (!digest)
        return false;
    digest_add_text(digest, prefix);
    digest_add_text(digest, identity->name);
    digest_add_text(digest, mark);
    if (!digest_end(&digest, text))
        return false;
    snprintf(ret, OWN_STREAM_SIZE, "%.24s.%.18s-%.20s", prefix, identity->name, text + strlen("sha256:"));
    return true;
}
