/*
 * transfers.h - libcurl on the gateway's loop. That a transfer has ended is told outside of libcurl's own calls, so
 * that whoever hears it may free what is its own.
 */
#ifndef SLUICE_CLIENT_GATEWAY_OUTGOING_TRANSFERS_H
#define SLUICE_CLIENT_GATEWAY_OUTGOING_TRANSFERS_H

#include <curl/curl.h>
#include <stdbool.h>

#include "common/loop/loop.h"

struct transfers;

/* In a struct of who asks. */
struct transfer {
    CURL *easy; /* the owner's */
    void (*ended)(void *arg, CURLcode code);
    void *arg;
    bool is_under_way;
};

/* NULL: out of memory. */
struct transfers *transfers_open(struct loop *loop);
/* Nothing is under way any more. NULL-safe. */
void transfers_close(struct transfers **transfers);

/*
 * A handle for that URL, which goes there and nowhere else: by http or https, to no proxy, after no redirect. The
 * authorities of SSL_CERT_FILE are believed, if it is set. NULL: out of memory.
 */
CURL *transfers_handle(const char *url);
/* `ended` is called once, later; easy, ended and arg are set. False: out of memory. */
bool transfers_begin(struct transfers *transfers, struct transfer *transfer);
/* It is given up: `ended` is not called any more. May be called twice. */
void transfers_give_up(struct transfers *transfers, struct transfer *transfer);

#endif
