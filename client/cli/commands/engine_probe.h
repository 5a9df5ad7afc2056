/* engine_probe.h - whether something takes connections where an engine is said to be. */
#ifndef SLUICE_CLIENT_CLI_COMMANDS_ENGINE_PROBE_H
#define SLUICE_CLIENT_CLI_COMMANDS_ENGINE_PROBE_H

#include "common/base/fail.h"

/* 0, or negative errno. */
int engine_probe(const char *url, int timeout_ms, struct fail *fail);

#endif
