/* run.h - what was planned is started, kept running and stopped. */
#ifndef SLUICE_CLIENT_CLI_UP_RUN_H
#define SLUICE_CLIENT_CLI_UP_RUN_H

#include "client/cli/up/up.h"

/* Starts, keeps running until told to stop, stops. An exit status. */
int up_run(struct up *up);

#endif
