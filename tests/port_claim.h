/*
 * port_claim.h - ports that are one test's until its process ends, also while nothing listens there: an abstract
 * socket per port, a name that all tests of this network know. tests/system/harness.py claims alike.
 */
#ifndef SLUICE_TESTS_PORT_CLAIM_H
#define SLUICE_TESTS_PORT_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* False when another has it. The descriptor stays open on purpose. */
static inline bool port_claim(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "sluice-test-port-%d", port);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) == 0)
        return true;
    if (fd >= 0)
        close(fd);
    return false;
}

/* The first of `count` neighbouring ports, below those that workers and the system hand out; what else listens there is
 * not asked. */
static inline int ports_claim(int count)
{
    for (;;) {
        unsigned short prng = 0;
        if (getrandom(&prng, sizeof(prng), 0) < 0)
            return -1;
        int first = 10000 + prng % 9990, claimed = 0;
        while (claimed < count && port_claim(first + claimed))
            claimed++;
        if (claimed == count)
            return first;
    }
}

#endif
