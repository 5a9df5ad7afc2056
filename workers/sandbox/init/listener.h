/*
 * listener.h - sockets that pid 1 makes inside the sandbox before it gives up its rights, and hands
 * out: whoever connects to one inside is answered by the worker. A Unix listener is
 * /run/sluice/grant/NAME, in a directory that those inside cannot change; a TCP one is
 * 127.0.0.1:PORT, or another port where that one is taken. Each is told in a variable, and all
 * variables in /run/sluice/environ, for processes that we do not start (ipython_zygote.py).
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_LISTENER_H
#define SLUICE_WORKERS_SANDBOX_INIT_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

enum {
    LISTENERS_MAX = 8,
    LISTENER_NAME_SIZE = 33,
    LISTENER_VARIABLE_SIZE = 96 /* "SLUICE_GRANT_" NAME "=/run/sluice/grant/" NAME */
};

struct listener {
    char name[LISTENER_NAME_SIZE]; /* a file's name, of a-z, 0-9 and - */
    bool is_tcp;
    uint16_t port;
};

/* A listening socket; `commands` is open on /run/sluice. `variable` as in environ. -1 and fail. */
int listener_make(const struct listener *listener, int commands, char *variable,
                  struct fail *fail);
/* Writes the file; none without a variable. */
int listener_tell(int commands, char variables[][LISTENER_VARIABLE_SIZE], size_t count,
                  struct fail *fail);

#endif
