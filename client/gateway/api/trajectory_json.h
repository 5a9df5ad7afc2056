/* trajectory_json.h - trajectories as JSON: all of one, and what a list or a page shows of it. */
#ifndef SLUICE_CLIENT_GATEWAY_API_TRAJECTORY_JSON_H
#define SLUICE_CLIENT_GATEWAY_API_TRAJECTORY_JSON_H

#include "client/lib/stream/trajectory_view.h"

/* As `sluice show --json` prints it, with a line's end. False with a refusal: its record cannot be read. */
bool trajectory_json(const struct msg_trajectory *message, struct buffer *ret, struct refusal *no);
/* Without tokens and messages: how it ended, what for, when, and how much of what it was. */
bool trajectory_summary(const struct msg_trajectory *message, struct buffer *ret, struct refusal *no);

#endif
