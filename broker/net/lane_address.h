/*
 * lane_address.h - the endpoint of a worker's beat: what it says, and whether the broker connects there.
 *
 * An endpoint is a peer's text, and libzmq would take more of it than is good. Here it is one of
 *
 *     tcp://HOST:PORT     HOST an IPv4 address, an [IPv6 address] or a host's name, PORT from 1 to 65535
 *     ipc:///PATH
 *
 * and nothing else: no `SOURCE;DESTINATION`, no interface, no wildcard, no abstract socket.
 *
 * The broker connects to the address that the worker's own connection comes from (its peer), and beside that
 * only to what its operator listed (--lanes); to a Unix socket only in the directory of its own --ipc. A name
 * is not looked up because a worker says it: it stands for the worker's own address, unless it is listed.
 *
 * Pure: text in, text out.
 */
#ifndef SLUICE_BROKER_NET_LANE_ADDRESS_H
#define SLUICE_BROKER_NET_LANE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "common/base/slice.h"

enum { LANE_HOST_SIZE = 256, LANE_ENDPOINT_SIZE = 320 };

struct lane_address {
    bool is_ipc;
    bool is_name; /* tcp: HOST is a name, in lower case */
    uint16_t port;
    char host[LANE_HOST_SIZE]; /* without brackets; ipc: the path */
};

/* Where lanes may lead. Both are borrowed. */
struct lane_rules {
    const char *list;    /* "10.0.0.0/8,fd00::/8,192.0.2.7,node7.example"; NULL or "": nothing */
    const char *ipc_dir; /* of the broker's own sockets; NULL: no ipc lanes */
};

/* -EINVAL: an item of the list is no address, range or name, and `fail` says which. */
int lane_rules_check(const struct lane_rules *rules, struct fail *fail);

/* -EINVAL: it is no endpoint of a lane. */
int lane_address_parse(struct slice endpoint, struct lane_address *ret, struct fail *fail);
/* As libzmq takes it. */
void lane_address_format(const struct lane_address *address, char ret[LANE_ENDPOINT_SIZE]);

/*
 * Makes it the address to connect to, for a worker whose connection comes from `peer`: an IP address as text; NULL or
 * something else where it has none, as over ipc: then it is on this machine. A name remains one only if the
 * operator listed it. -EACCES: the broker does not connect there, and `fail` says what would help.
 */
int lane_address_settle(struct lane_address *address, const struct lane_rules *rules, const char *peer,
                        struct fail *fail);

#endif
