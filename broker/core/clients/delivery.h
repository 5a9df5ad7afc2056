/*
 * core/clients/delivery.h - how trajectories leave a stream: heads, fetch, acknowledgements.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_DELIVERY_H
#define SLUICE_BROKER_CORE_CLIENTS_DELIVERY_H

struct call;
struct core;

void streams_tick(struct core *core);

void handle_stream_fetch(struct core *core, const struct call *call);
void handle_stream_ack(struct core *core, const struct call *call);
void handle_stream_renew(struct core *core, const struct call *call);

#endif
