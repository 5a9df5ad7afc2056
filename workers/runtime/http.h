/*
 * http.h - HTTP requests from fibers, over one libcurl multi handle a loop.
 * Connections are kept and reused; a fiber that is cancelled or past its deadline closes
 * its connection, which is how engines learn to stop generating.
 *
 * Nothing waits for ever: connecting has its bound, an answer that has begun may not fall silent,
 * and until it begins the fiber's deadline holds. One that trickles ends at that deadline too.
 */
#ifndef SLUICE_WORKERS_RUNTIME_HTTP_H
#define SLUICE_WORKERS_RUNTIME_HTTP_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "common/loop/loop.h"

struct http;

struct http_limits {
    long connections_max; /* open to one host */
    int64_t connect_ms;
    int64_t silence_ms; /* without a byte, once the answer has begun */
};
enum { HTTP_CONNECT_MS = 10000, HTTP_SILENCE_MS = 120000 };

/* NULL with fail. */
struct http *http_create(struct loop *loop, const struct http_limits *limits, struct fail *fail);
void http_destroy(struct http **http);
struct loop *http_loop(const struct http *http);

struct http_reply {
    long status;           /* 200, 503, ... */
    int64_t retry_after_s; /* as its header says; 0: nothing */
    struct buffer body;    /* buffer_finish it */
};

/*
 * body NULL: GET, else POST as application/json. 0 when any HTTP answer came, whatever its
 * status. Else negative: -ECONNREFUSED (nobody there), -ETIMEDOUT, -ECANCELED, -EMSGSIZE
 * (more than body_max bytes), -EIO (broken on the way, or fallen silent), with a sentence in fail.
 */
int http_request(struct http *http, const char *url, const char *body, size_t body_max, struct http_reply *reply,
                 struct fail *fail);

/* The same with one more header line, "Name: value", which no error names. NULL: none. */
int http_request_with(struct http *http, const char *url, const char *header, const char *body, size_t body_max,
                      struct http_reply *reply, struct fail *fail);

/*
 * A line: what is asked over it goes over one connection, and over a new one in its place where that was closed. One
 * request at a time; closed before `http` is destroyed. NULL: out of memory.
 */
struct http_line;
struct http_line *http_line_open(void);
void http_line_close(struct http_line **line); /* NULL-safe */
/* How many connections were made for it so far, and how many requests were sent over it. */
uint64_t http_line_connects(const struct http_line *line);
uint64_t http_line_requests(const struct http_line *line);
/* As http_request, over the line (NULL: over any connection). */
int http_request_on(struct http *http, struct http_line *line, const char *url, const char *body, size_t body_max,
                    struct http_reply *reply, struct fail *fail);

/*
 * Who hears the body of an answer of status 200 as it comes, which the reply does not have then: on the loop's stack.
 * False: it is enough, and the request ends with -EIO. Such an answer may fall silent, as one may that has not begun.
 */
struct http_hearer {
    bool (*hear)(void *arg, struct slice bytes);
    void *arg;
};
int http_request_heard(struct http *http, struct http_line *line, const char *url, const char *body, size_t body_max,
                       const struct http_hearer *hearer, struct http_reply *reply, struct fail *fail);

/*
 * POSTs `body` and forgets it: for what is said to a server on the way out of a fiber that was
 * cancelled. Does not await; works on a fiber and off it. What comes of it nobody learns; it is
 * given up after HTTP_FORGET_MS, and not even begun when HTTP_FORGET_MAX of its kind are under way.
 */
enum { HTTP_FORGET_MS = 5000, HTTP_FORGET_MAX = 4096 };
void http_forget(struct http *http, const char *url, const char *body);

/*
 * GETs off any fiber, within timeout_ms: `answered` is called on the loop's stack, with the reply, whose body it may
 * take, or why there is none (then `reply` is NULL). Not called if `http` is destroyed before. False when out of
 * memory.
 */
typedef void (*http_answered)(void *arg, struct http_reply *reply, const struct fail *why);
bool http_get_later(struct http *http, const char *url, size_t body_max, int64_t timeout_ms, http_answered answered,
                    void *arg);

#endif
