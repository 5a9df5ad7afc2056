/*
 * http.h - HTTP requests from fibers, over one libcurl multi handle a loop.
 * Connections are kept and reused; a fiber that is cancelled or past its deadline closes
 * its connection, which is how engines learn to stop generating.
 */
#ifndef SLUICE_WORKERS_HTTP_H
#define SLUICE_WORKERS_HTTP_H

#include "common/buffer.h"
#include "common/fail.h"
#include "workers/loop.h"

struct http;

/* connections_max bounds open connections to one host. NULL with fail. */
struct http *http_create(struct loop *loop, long connections_max, struct fail *fail);
void http_destroy(struct http **http);

struct http_reply {
    long status;         /* 200, 503, ... */
    struct buffer body;  /* buffer_finish it */
};

/*
 * body NULL: GET, else POST as application/json. 0 when any HTTP answer came, whatever its
 * status. Else negative: -ECONNREFUSED (nobody there), -ETIMEDOUT, -ECANCELED, -EMSGSIZE
 * (more than body_max bytes), -EIO (broken on the way), with a sentence in fail.
 */
int http_request(struct http *http, const char *url, const char *body, size_t body_max,
                 struct http_reply *reply, struct fail *fail);

#endif
