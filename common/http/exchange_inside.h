/* exchange_inside.h - what an exchange is made of, for the server's own files. */
#ifndef SLUICE_COMMON_HTTP_EXCHANGE_INSIDE_H
#define SLUICE_COMMON_HTTP_EXCHANGE_INSIDE_H

#include <sys/types.h>

#include "common/http/coding.h"
#include "common/http/exchange.h"
#include "common/http/exchange_answer.h"
#include "common/http/http_server_inside.h"
#include "common/http/target.h"

enum { EXCHANGE_METHOD_SIZE = 16 };

struct exchange {
    struct http_server *server;
    struct http_connection *connection;
    void *user;
    struct loop_watch *hangup;
    struct target target;
    char method[EXCHANGE_METHOD_SIZE];
    enum coding coding;
    uint64_t forgotten; /* bytes of a body that is not kept */
    struct buffer body; /* as it comes, and then decoded */
    /* The answer. */
    int status;            /* 0: there is none yet */
    struct buffer headers; /* each name and each value with a NUL behind it */
    struct buffer out;     /* all of it, or what a stream has not sent ... */
    size_t out_at;         /* ... from here on */
    uint64_t size;         /* EXCHANGE_SIZE_UNKNOWN */
    uint64_t sent;
    ssize_t (*read)(void *arg, uint64_t at, char *into, size_t max); /* NULL: `out` at once */
    void *read_arg;
    size_t counted;        /* bytes that it is counted with in the server's */
    bool is_old : 1;       /* of HTTP/1.0, which knows no chunks */
    bool is_heard : 1;     /* its head was there */
    bool is_asked : 1;     /* its body, too */
    bool is_queued : 1;    /* MHD has the answer */
    bool is_last : 1;      /* its connection ends with it: where the next request begins is not sure */
    bool is_ended : 1;     /* a stream's end was said */
    bool is_all_read : 1;  /* MHD has taken all of the answer */
    bool is_dropped : 1;   /* its connection is cut */
    bool is_hung_up : 1;   /* nobody waits for the rest */
    bool is_suspended : 1; /* MHD does nothing for it until it is woken */
};

/* NULL: out of memory. */
struct exchange *exchange_create(struct http_connection *connection, const char *target);
void exchange_destroy(struct exchange *exchange);
/* After its body or its answer has changed: what they take of the server's memory. */
void exchange_recount(struct exchange *exchange);

#endif
