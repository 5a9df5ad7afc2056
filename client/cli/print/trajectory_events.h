/* trajectory_events.h - a trajectory as events of docs/live.md, one a line on stdout. */
#ifndef SLUICE_CLIENT_CLI_PRINT_TRAJECTORY_EVENTS_H
#define SLUICE_CLIENT_CLI_PRINT_TRAJECTORY_EVENTS_H

#include "client/sluice.h"

void trajectory_events(const struct sluice_trajectory *t);
/* The last event: that it has ended, and how. `t` NULL: it is no longer kept. */
void trajectory_event_ended(const char *rollout, const struct sluice_trajectory *t);

#endif
