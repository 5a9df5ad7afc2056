/*
 * events.h - GET /events: what happens to tasks and sessions, as it does, to whoever hears it. What nobody hears is not
 * kept; a client that comes back asks for what it missed by the tasks' own paths.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_EVENTS_H
#define SLUICE_CLIENT_GATEWAY_POLAR_EVENTS_H

#include "client/gateway/polar/tasks.h"

void events_task_created(const struct polar_task *task);
void events_session(const struct polar_task *task, unsigned sample, const char *status);
void events_task_updated(const struct polar_task *task);
void events_task_completed(const struct polar_task *task);

/* The call hears them from now on. False: out of memory. */
bool events_begin(struct polar_of *of, struct http_call *call);

#endif
