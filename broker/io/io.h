/*
 * shell.h - the broker's body: sockets, ledger and lanes around the core (core.h).
 *
 *   FRONT  ROUTER  clients: requests and answers
 *   SINK   PULL    workers: beats and results
 *   FEED   XPUB    trajectories and heads, as [t/<stream>/][message]
 *
 * A message is one frame. On FRONT that is what a DEALER sends; the empty delimiter of a
 * REQ, as anything else of more than one frame, is refused. One cycle takes what is there,
 * runs the core, commits everything in one transaction, and then sends.
 *
 * shell_serve returns 0 after SIGTERM or SIGINT, which shell_open blocks and the shell
 * reads itself, and a negative errno when the ledger failed: then nothing that was not on
 * disk has been acknowledged.
 */
#ifndef SLUICE_BROKER_SHELL_SHELL_H
#define SLUICE_BROKER_SHELL_SHELL_H

#include "broker/core/core.h"
#include "broker/ledger/ledger.h"
#include "common/base/fail.h"

struct shell;

enum { ENDPOINT_SIZE = 256 };

/* Where the sockets are bound, as ZeroMQ endpoints. */
struct shell_endpoints {
    char front[ENDPOINT_SIZE], sink[ENDPOINT_SIZE], feed[ENDPOINT_SIZE];
};

struct shell_options {
    struct ledger_options ledger; /* its directory, borrowed, is the broker's data directory */
    uint64_t disk_reserve_bytes;  /* with less free on its disk submits are refused; 0: never */
    const char *store_dir;        /* of layers, which are deleted when nobody needs them; NULL: nothing is */
    int64_t store_grace_ms;       /* layer_gc.h */
    const char *ipc_dir;          /* NULL, or the directory of ipc:// endpoints, which it keeps for itself */
    const char *lanes;            /* beside the workers' own addresses, where lanes may lead (lane_address.h) */
    const char *keys_dir;         /* NULL: nobody is asked for a key (certs.h) */
    struct shell_endpoints endpoints;
    struct core_settings settings;
    enum placing placing;
    size_t connections_max; /* conn_limit.h */
};

/* Opens the ledger, restores the core, binds. *ret is the caller's (shell_close). */
int shell_open(struct shell **ret, const struct shell_options *options, struct fail *fail);
int shell_serve(struct shell *shell, struct fail *fail);
/* Closes all, in order; answers that are on their way get half a second. NULL-safe. */
void shell_close(struct shell **shell);

/* As bound: a port given as * is a number here. */
const struct shell_endpoints *shell_bound(const struct shell *shell);
uint64_t shell_epoch(const struct shell *shell);

#endif
