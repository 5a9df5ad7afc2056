/*
 * engine_probe.h - probes an engine because the broker asks for it (engine.probe): whether it answers at
 * /health, which all dialects have, and how full its cache is, where /metrics tells. Off any fiber; what
 * was seen goes with the engine's next load report (engines.h). Of one that answers it is also found out what it serves
 * (engine_describe), by a fiber of its own.
 */
#ifndef SLUICE_WORKERS_ENGINES_ENGINE_PROBE_H
#define SLUICE_WORKERS_ENGINES_ENGINE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "workers/engines/server/parts.h"

struct engine;
struct engines;

enum {
    PROBE_ANSWER_MS = 5000,     /* an answer that takes longer is none */
    PROBE_METRICS_MS = 60000,   /* an engine that tells nothing of its cache is asked again after so long */
    PROBE_METRICS_MAX = 4 << 20 /* bytes of /metrics */
};

/* Nothing happens while it is probed already. */
void engine_probe_start(struct engine *engine);

#endif
