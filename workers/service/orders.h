/* orders.h - what the broker tells a worker. */
#ifndef SLUICE_WORKERS_SERVICE_ORDERS_H
#define SLUICE_WORKERS_SERVICE_ORDERS_H

#include "workers/service/worker_inside.h"

/* Takes one message of the lane. False with a refusal: it was none, and nothing changed. */
bool worker_obey(struct worker *worker, zmq_msg_t *message, struct refusal *no);

#endif
