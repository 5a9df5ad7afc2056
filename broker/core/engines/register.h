/*
 * core/engines/register.h - engine.add, engine.remove, engine.drain: which engines are registered.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_REGISTER_H
#define SLUICE_BROKER_CORE_ENGINES_REGISTER_H

#include "broker/core/state/interface.h"

struct call;

bool engine_restore(struct core *core, const struct core_engine *row);

void handle_engine_add(struct core *core, const struct call *call);
void handle_engine_remove(struct core *core, const struct call *call);
void handle_engine_drain(struct core *core, const struct call *call);

#endif
