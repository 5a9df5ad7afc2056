/*
 * called_back.h - a POST of a task's results to the URL that its request named: one, and another where a gateway was
 * killed before it knew what became of the first. Who does not take it asks for them.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_CALLED_BACK_H
#define SLUICE_CLIENT_GATEWAY_POLAR_CALLED_BACK_H

#include "client/gateway/polar/tasks.h"

/* Nothing where it names none, or was called back already, as far as an earlier gateway knew, too. */
void called_back(struct polar_task *task);

#endif
