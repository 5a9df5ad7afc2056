/* session_post.h - the POST that ends a session, over HTTP. */
#ifndef SLUICE_CLIENT_CLI_SESSION_SESSION_POST_H
#define SLUICE_CLIENT_CLI_SESSION_SESSION_POST_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

/* The status, with the body of the answer; or negative errno with a sentence. Takes no more than a minute. */
int session_post(const char *url, const char *path, const char *json, struct buffer *answer, struct fail *fail);

#endif
