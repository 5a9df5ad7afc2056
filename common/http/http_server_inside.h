/* http_server_inside.h - what a server is made of, for its own files. */
#ifndef SLUICE_COMMON_HTTP_HTTP_SERVER_INSIDE_H
#define SLUICE_COMMON_HTTP_HTTP_SERVER_INSIDE_H

#include "common/http/http_connections.h"
#include "common/http/http_door.h"
#include "common/http/http_server.h"

struct MHD_Daemon;

/* One of MHD's, with some of the server's connections. */
struct http_daemon {
    LIST_ENTRY(http_daemon) link;
    struct http_server *server;
    struct MHD_Daemon *mhd;
    struct loop_watch *watch;
    struct loop_soon soon; /* it has more to do without any event */
    struct fail *starting; /* hears why it does not start; NULL: it has started */
    size_t count;          /* of its connections */
    uint64_t renewals;     /* as many as the server had seen when it was opened */
};

struct http_server {
    struct http_server_plan plan; /* with its own certificate and key */
    struct loop *loop;
    struct http_door door;
    LIST_HEAD(, http_daemon) daemons; /* the latest first */
    uint64_t renewals;                /* of the certificate */
    struct http_connections connections;
    struct loop_soon left; /* posted when connections have ended */
    struct loop_timer *tick;
    size_t held; /* bytes of bodies and answers */
};

#endif
