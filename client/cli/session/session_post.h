/*
 * session_post.h - the POST that ends a session, over HTTP or HTTPS, without any proxy. Who answers over HTTPS must
 * have a certificate for the host, of an authority of `cacert`, of $SSL_CERT_FILE where that is NULL, else of the
 * system's.
 */
#ifndef SLUICE_CLIENT_CLI_SESSION_SESSION_POST_H
#define SLUICE_CLIENT_CLI_SESSION_SESSION_POST_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

struct session_posted {
    const char *url, *path, *json;
    const char *cacert; /* a file of certificates in PEM; NULL: none is named */
};
/* The status, with the body of the answer; or negative errno with a sentence. Takes no more than a minute. */
int session_post(const struct session_posted *posted, struct buffer *answer, struct fail *fail);

#endif
