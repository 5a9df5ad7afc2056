/* orders.h - what the broker tells a worker. */
#ifndef SLUICE_WORKERS_SERVICE_ORDERS_H
#define SLUICE_WORKERS_SERVICE_ORDERS_H

#include "workers/service/worker_inside.h"

/*
 * Takes one message of the lane. `frame` has its bytes and nothing else, and may be taken; NULL: they are in a bundle.
 * False with a refusal: it was none, and nothing changed.
 */
bool worker_obey(struct worker *worker, struct slice bytes, zmq_msg_t *frame, struct refusal *no);

#endif
