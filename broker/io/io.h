/*
 * io.h - the broker's I/O: sockets, ledger and lanes around the core (core.h).
 *
 *   FRONT  ROUTER  clients: requests and answers
 *   SINK   PULL    workers: beats and results
 *   FEED   XPUB    trajectories and heads, as [t/<stream>/][message]
 *
 * A message is one frame. On FRONT that is what a DEALER sends; the empty delimiter of a
 * REQ, as anything else of more than one frame, is refused. One cycle takes what is there and
 * runs the core; what comes of it, of one cycle or of several, is committed in one transaction (handover.c), and then
 * what is no promise is sent; promises leave once that is on disk.
 *
 * io_serve returns 0 after SIGTERM or SIGINT, which io_open blocks and io_serve
 * reads itself, and a negative errno when the ledger failed: then nothing that was not on
 * disk has been acknowledged.
 */
#ifndef SLUICE_BROKER_IO_IO_H
#define SLUICE_BROKER_IO_IO_H

#include "broker/core/core.h"
#include "broker/ledger/ledger.h"
#include "common/base/fail.h"

struct io;

enum { ENDPOINT_SIZE = 256 };

/* Where the sockets are bound, as ZeroMQ endpoints. */
struct io_endpoints {
    char front[ENDPOINT_SIZE], sink[ENDPOINT_SIZE], feed[ENDPOINT_SIZE];
};

struct io_options {
    struct ledger_options ledger; /* its directory, borrowed, is the broker's data directory */
    uint64_t disk_reserve_bytes;  /* with less free on its disk submits are refused; 0: never */
    const char *store_dir;        /* of layers, which are deleted when nobody needs them; NULL: nothing is */
    int64_t store_grace_ms;       /* layer_gc.h */
    const char *ipc_dir;          /* NULL, or the directory of ipc:// endpoints, which it keeps for itself */
    const char *lanes;            /* beside the workers' own addresses, where lanes may lead (lane_address.h) */
    const char *keys_dir;         /* NULL: nobody is asked for a key (certs.h) */
    struct io_endpoints endpoints;
    struct core_settings settings;
    enum placing placing;
    size_t connections_max; /* conn_limit.h */
};

/* Opens the ledger, restores the core, binds. *ret is the caller's (io_close). */
int io_open(struct io **ret, const struct io_options *options, struct fail *fail);
int io_serve(struct io *io, struct fail *fail);
/* Closes all, in order; answers that are on their way get half a second. NULL-safe. */
void io_close(struct io **io);

/* As bound: a port given as * is a number here. */
const struct io_endpoints *io_bound(const struct io *io);
uint64_t io_epoch(const struct io *io);

#endif
