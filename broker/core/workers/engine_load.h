/*
 * core/workers/engine_load.h - engine.load: what a run worker sees of an engine, and what follows.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_ENGINE_LOAD_H
#define SLUICE_BROKER_CORE_WORKERS_ENGINE_LOAD_H

struct call;
struct core;

void handle_engine_load(struct core *core, const struct call *call);

#endif
