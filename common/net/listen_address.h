/*
 * listen_address.h - where a program listens: HOST:PORT, PORT of the loopback (0: any that is free), or unix:PATH, a
 * socket that only its owner can use.
 */
#ifndef SLUICE_COMMON_NET_LISTEN_ADDRESS_H
#define SLUICE_COMMON_NET_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/fail.h"

enum { LISTEN_HOST_MAX = 253 };

struct listen_address {
    int fd;                   /* listens, close-on-exec; the caller's */
    bool is_loopback, is_any; /* a Unix socket is neither */
    bool is_unix;
    char base[300]; /* HOST:PORT, or unix:PATH */
};

/* HOST:PORT or PORT in its parts; *ret_port is the text's end. False: it is none. */
bool listen_address_split(const char *text, char ret_host[LISTEN_HOST_MAX + 1], const char **ret_port);
/* `option`: in whose words it fails, "--listen". -EINVAL: it is no address; else what the system refused. */
int listen_address_open(const char *option, const char *text, struct listen_address *ret, struct fail *fail);

#endif
