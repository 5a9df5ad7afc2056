/* called_back.h - one POST of a task's results to the URL that its request named; who misses it asks for them. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_CALLED_BACK_H
#define SLUICE_CLIENT_GATEWAY_POLAR_CALLED_BACK_H

#include "client/gateway/polar/tasks.h"

/* Nothing where it names none, or was called back already, by an earlier gateway too. */
void called_back(struct polar_task *task);

#endif
