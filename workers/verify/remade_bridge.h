/* remade_bridge.h - what stands between two replies, made again: as the bridge of the engine's template. Awaits. */
#ifndef SLUICE_WORKERS_VERIFY_REMADE_BRIDGE_H
#define SLUICE_WORKERS_VERIFY_REMADE_BRIDGE_H

#include "workers/verify/remade_turn.h"

/* *ret, false before: whether the turn is what stands between the two replies. */
int remade_bridge_check(struct remade_turn *turn, bool *ret, struct fail *fail);

#endif
