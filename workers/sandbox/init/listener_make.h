/*
 * listener_make.h - sockets that pid 1 makes inside the sandbox before it gives up its rights, and hands
 * out: whoever connects to one inside is answered by the worker. A Unix listener is
 * /run/sluice/grant/NAME, in a directory that those inside cannot change; a TCP one is
 * 127.0.0.1:PORT, or another port where that one is taken. Each is told in a variable, and all
 * variables in /run/sluice/environ, for processes that we do not start (ipython_zygote.py).
 */
#ifndef SLUICE_WORKERS_SANDBOX_INIT_LISTENER_MAKE_H
#define SLUICE_WORKERS_SANDBOX_INIT_LISTENER_MAKE_H

#include <stddef.h>

#include "common/base/fail.h"
#include "workers/sandbox/proto/listener.h"

/* A listening socket; `commands` is open on /run/sluice. `variable` as in environ. -1 and fail. */
int listener_make(const struct listener *listener, int commands, char *variable, struct fail *fail);
/* Writes the file; none without a variable. */
int listener_tell(int commands, char variables[][LISTENER_VARIABLE_SIZE], size_t count, struct fail *fail);

#endif
