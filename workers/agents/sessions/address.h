/* address.h - where sessions are listened for: HOST:PORT, or PORT of the loopback. Port 0 is any that is free. */
#ifndef SLUICE_WORKERS_AGENTS_SESSIONS_ADDRESS_H
#define SLUICE_WORKERS_AGENTS_SESSIONS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/fail.h"

struct sessions_address {
    int fd; /* listens, close-on-exec; the caller's */
    bool is_loopback, is_any;
    char base[300]; /* http://HOST:PORT */
};

/* -EINVAL: it is no address; else what the system refused. */
int sessions_listen(const char *text, struct sessions_address *ret, struct fail *fail);

#endif
