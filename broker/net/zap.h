/*
 * zap.h - answers libzmq when it asks who may come in (ZeroMQ Authentication Protocol, RFC 27).
 *
 * A thread of its own, so that a slow disk never keeps somebody waiting. Each CURVE socket has
 * a domain, which says which roles it takes:
 *     front  trainers and admins     sink  workers
 *     feed   trainers and admins     lane  workers (it is the broker that connects)
 * Who is let in has as User-Id of every message its public key in Z85; everything else is asked
 * anew for each message, so that a key that was removed is worth nothing at once.
 */
#ifndef SLUICE_BROKER_NET_ZAP_H
#define SLUICE_BROKER_NET_ZAP_H

#include "broker/net/certs.h"

enum zap_domain { ZAP_FRONT, ZAP_SINK, ZAP_FEED, ZAP_LANE, ZAP_DOMAIN_COUNT };

const char *zap_domain_name(enum zap_domain domain);
bool zap_takes(enum zap_domain domain, enum key_role role);

struct zap;

/* Binds the handler of this context; `certs` must outlive it. Do this before any other bind. */
int zap_start(struct zap **ret, void *context, struct certs *certs, struct fail *fail);
/* Ends the thread; the context still stands. NULL-safe. */
void zap_stop(struct zap **zap);

#endif
