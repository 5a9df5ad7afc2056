/* top_loop.h - `sluice top` in a terminal: keys, signals and answers, one at a time, until it is told to end. */
#ifndef SLUICE_CLIENT_CLI_TOP_TOP_LOOP_H
#define SLUICE_CLIENT_CLI_TOP_TOP_LOOP_H

#include "client/cli/command.h"

/* Returns an exit status. */
int top_loop(struct sluice_client *client, int64_t interval_ms);

#endif
