/*
 * http_inside.h - shared by http.c (requests) and http_loop.h (curl's sockets and its timer on the loop). Nobody
 * else includes it.
 */
#ifndef SLUICE_WORKERS_RUNTIME_HTTP_INSIDE_H
#define SLUICE_WORKERS_RUNTIME_HTTP_INSIDE_H

#include <curl/curl.h>

#include "workers/runtime/http.h"

struct http_login; /* http_login.h */
struct request;

struct http {
    struct loop *loop;
    struct http_limits limits;
    CURLM *multi;
    struct loop_timer *timer;
    struct curl_slist *headers;
    struct request *loose;
    size_t forgotten_count;
    struct http_login *logins;
    void (*acted)(struct http *http); /* curl has done something: requests may be done */
};

#endif
