/* listener.h - a socket inside a sandbox that the worker asks for, and answers on: listener_make.h. */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_LISTENER_H
#define SLUICE_WORKERS_SANDBOX_PROTO_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LISTENERS_MAX = 9, /* grants, and the model of a harness */
    LISTENER_NAME_SIZE = 33,
    LISTENER_VARIABLE_SIZE = 96 /* "SLUICE_GRANT_" NAME "=/run/sluice/grant/" NAME */
};

struct listener {
    char name[LISTENER_NAME_SIZE]; /* a file's name, of a-z, 0-9 and - */
    bool is_tcp;
    uint16_t port;
};

#endif
