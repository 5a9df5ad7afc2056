/* registrar.h - a process of its own that registers the engines of `sluice up` with the broker. */
#ifndef SLUICE_CLIENT_CLI_UP_REGISTRAR_H
#define SLUICE_CLIENT_CLI_UP_REGISTRAR_H

#include "client/cli/up/up.h"

/* Begins to register the options' engines; ends it, and whether all were. */
int registrar_start(struct registrar *registrar, const struct up *up, struct fail *fail);
bool registrar_end(struct registrar *registrar);

#endif
